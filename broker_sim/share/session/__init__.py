"""Share sessions: which partitions a member of a share group fetches, and whether the member has left."""
