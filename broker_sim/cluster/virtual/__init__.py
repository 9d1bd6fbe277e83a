"""Clusters in virtual time, their clients, and the invariants checked after each step."""
