"""Scenarios of compacted topics after the log cleaner's work, and of the transactions in them."""
