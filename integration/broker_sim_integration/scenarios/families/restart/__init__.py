"""Brokers that are restarted, and what they make of damaged files."""
