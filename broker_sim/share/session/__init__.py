"""Share sessions (KIP-932): which partitions a member of a share group fetches, and who has left."""

from broker_sim.share.session.cache import ShareSessionCache
from broker_sim.share.session.context import ShareFetchContext, ShareSessions
from broker_sim.share.session.session import CachedSharePartition, ShareSession, ShareSessionKey

__all__ = [
    "CachedSharePartition",
    "ShareFetchContext",
    "ShareSession",
    "ShareSessionCache",
    "ShareSessionKey",
    "ShareSessions",
]
