"""Code shared by the scenarios of quotas."""
