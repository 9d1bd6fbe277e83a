"""The statuses of a group in a heartbeat's answer, beside errors; mirrors `StreamsGroupHeartbeatResponse.Status`."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """The codes; each comes with a text for people."""

    STALE_TOPOLOGY = 0
    """The member has an older topology than the group."""
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    """Topics that are read together have different numbers of partitions."""
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    """A member wants all members to end."""
    ASSIGNMENT_DELAYED = 5
