"""Invariants of a random run: while it goes on, in what clients have learned, and at its end."""
