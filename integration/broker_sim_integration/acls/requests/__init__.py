"""The requests of the table of rights, by what they are about."""
