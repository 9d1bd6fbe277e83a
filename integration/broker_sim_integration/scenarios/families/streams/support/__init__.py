"""Streams groups of a scenario, their members and topologies."""
