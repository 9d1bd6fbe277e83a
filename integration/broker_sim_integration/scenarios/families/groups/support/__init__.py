"""Code shared by the scenarios of groups."""
