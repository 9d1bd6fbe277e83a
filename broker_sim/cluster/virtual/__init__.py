"""Clusters in virtual time, their clients, and the invariants that are checked after each step."""
