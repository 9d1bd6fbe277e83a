"""Defects put in on purpose, and a command that measures which tests catch them.

`rooms/` holds the defects, one file per room of the code; `python -m tools.defects` runs them.
"""
