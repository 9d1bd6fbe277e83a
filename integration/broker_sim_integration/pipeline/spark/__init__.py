"""What the jobs run on: the session, tables, and this project's code as an archive."""
