"""Groups of the classic protocol: members join, their leader assigns, heartbeats keep sessions alive."""
