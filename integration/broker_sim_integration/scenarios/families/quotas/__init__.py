"""Scenarios of quotas: clients, connections and replication."""
