"""Faults that users inject into requests."""
