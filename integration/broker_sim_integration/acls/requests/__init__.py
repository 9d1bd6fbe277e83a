"""The requests of the table of rights, by subject."""
