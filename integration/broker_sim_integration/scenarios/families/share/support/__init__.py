"""Code shared by the scenarios of share groups: members, their group, and observations of responses."""
