"""The group coordinator: groups and their offsets, stored in `__consumer_offsets`."""
