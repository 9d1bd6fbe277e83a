"""Share sessions: the partitions that members fetch, and the detection of members that have disconnected."""
