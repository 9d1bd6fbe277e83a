"""Scenarios of things that reach an age and are then forgotten, closed, rolled or compacted."""
