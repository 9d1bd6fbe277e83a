"""Code shared by the scenarios of restarts."""
