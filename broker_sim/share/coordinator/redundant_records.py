"""Which records of `__share_group_state` newer ones have replaced; mirrors `ShareCoordinatorOffsetsManager`.

The topic is not compacted. A snapshot replaces all records of its share partition before it, so what lies
before the oldest of the last snapshots is needed by nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.share.share_state import SharePartitionKey


class RedundantRecords:
    """The offsets of the last snapshots of one partition of the topic."""

    def __init__(self) -> None:
        self._snapshots: dict[SharePartitionKey, int] = {}
        self._deleted_offset = 0

    def snapshot_written(self, key: SharePartitionKey, offset: int) -> None:
        """Note the snapshot at that offset."""
        self._snapshots[key] = offset

    def deleted(self, key: SharePartitionKey, offset: int) -> None:
        """Note the tombstone at that offset."""
        self._snapshots.pop(key, None)
        self._deleted_offset = offset

    def end_offset(self) -> int | None:
        """Return the offset before which no record is needed; None where all are."""
        return min(self._snapshots.values(), default=self._deleted_offset) or None
