"""The simulator in a process of its own, as users run it."""
