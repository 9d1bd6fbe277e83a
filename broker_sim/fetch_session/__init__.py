"""Fetch sessions (KIP-227): the last response to each fetcher, so that both sides send only changes."""

from broker_sim.fetch_session.manager import FetchManager
from broker_sim.fetch_session.session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    CachedPartition,
    FetchSession,
    PartitionKey,
    next_epoch,
)

__all__ = [
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "NO_SESSION",
    "CachedPartition",
    "FetchManager",
    "FetchSession",
    "PartitionKey",
    "next_epoch",
]
