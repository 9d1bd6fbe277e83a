"""APIs of share groups, of their persisted state and of the offsets in it."""
