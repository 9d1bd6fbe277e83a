"""The group coordinator: groups and their offsets, kept in the partitions of `__consumer_offsets`."""
