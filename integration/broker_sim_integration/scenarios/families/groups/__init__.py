"""Consumer groups: membership, rebalances, offsets, failover of their coordinators."""
