"""Invariants of a random run: during the run, in the responses to clients, and at its end."""
