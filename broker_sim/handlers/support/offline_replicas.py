"""Replicas that clients cannot reach; mirrors `KRaftMetadataCache.getOfflineReplicas`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.metadata import MetadataImage, PartitionState


def offline_replicas(image: MetadataImage, state: PartitionState, listener: str) -> list[int]:
    """Return the replicas whose brokers are fenced, not registered, or without that listener."""
    return [replica for replica in state.replicas if image.alive_endpoint(replica, listener) is None]
