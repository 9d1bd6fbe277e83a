"""Groups of the classic protocol: members join, a leader assigns, heartbeats keep sessions alive."""
