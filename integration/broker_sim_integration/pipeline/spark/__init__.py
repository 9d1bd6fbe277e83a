"""The base of the jobs: the session, tables, and this project's code as an archive."""
