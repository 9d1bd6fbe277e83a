"""Both sides play the scenarios; what they showed is laid side by side."""
