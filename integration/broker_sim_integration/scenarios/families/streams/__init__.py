"""Scenarios of streams groups: members, their tasks and topics, and their timeouts."""
