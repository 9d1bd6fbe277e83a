"""Common parts of coordinators: a runtime of shards, contexts that carry out what these decide, and records."""
