"""Numbers with a special meaning in requests; mirrors the constants of Kafka's request classes."""

from __future__ import annotations

from typing import Final

ACKS_ALL: Final = -1
"""The acks of a produce that waits for the in-sync replicas."""

BROKER_DEFAULT: Final = -1
"""Partition count or replication factor that stands for the broker's default."""

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
"""The node id and port of an unknown coordinator."""

NO_EPOCH: Final = -1
"""An unknown or missing epoch of a leader or a member."""
NO_OFFSET: Final = -1
"""A missing offset."""
