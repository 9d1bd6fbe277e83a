"""Scenarios of streams groups: members, their tasks and topics, and what ends them."""
