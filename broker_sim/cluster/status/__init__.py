"""Frozen snapshots of a cluster, its coordinators and purgatories, and its metrics."""
