"""Regular expressions as a real broker reads them: RE2/J's of clients, and Java's of configurations."""
