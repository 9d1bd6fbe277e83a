"""A whole cluster: its nodes, the verbs that act on them, their status, and virtual time."""
