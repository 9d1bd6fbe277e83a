"""Runs scenarios on both sides and compares what was observed."""
