"""Shared code of all coordinators: the runtime and its shards, the contexts that write their records, and the codec."""
