"""Runs scenarios on both sides and compares their observations."""
