"""The persisted state of share groups: the share coordinator, its log, and the way to it."""
