"""The real clusters: three nodes in containers or local processes, or a cluster at an address."""
