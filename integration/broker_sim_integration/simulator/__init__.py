"""The simulator in a process of its own, as a user has it."""
