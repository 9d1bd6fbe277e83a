"""Numbers in requests that stand for something; mirrors the constants of Kafka's request classes."""

from __future__ import annotations

from typing import Final

ACKS_ALL: Final = -1
"""The acks of a produce that waits for the in-sync replicas."""

BROKER_DEFAULT: Final = -1
"""Number of partitions or replicas of a new topic that stands for the broker's configuration."""

CONSUMER_REPLICA_ID: Final = -1
"""The replica id of a client."""

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
ISOLATION_LEVELS: Final = (READ_UNCOMMITTED, READ_COMMITTED)

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
"""Timestamps of ListOffsets that stand for a position instead of a time."""

NO_NODE: Final = -1
"""The node id, and port, of a coordinator that is not known."""

NO_EPOCH: Final = -1
"""The epoch of a leader or a member that is not known, or not told."""
NO_OFFSET: Final = -1
"""Stands for an offset that there is not."""
