"""The soak: all checks of this project, in parts, without a time limit."""
