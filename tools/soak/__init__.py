"""The soak: everything that this project checks, by parts, without a limit of time."""
