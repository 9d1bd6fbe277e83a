"""The trace: one JSON line for each step in the life of a delayed operation."""
