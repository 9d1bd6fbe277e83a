"""One fetch session; mirrors `kafka.server.FetchSession` and the epochs of `FetchMetadata`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim.fetch_session.cached_partition import CachedPartition, PartitionKey
    from broker_sim.replica import FetchPartition

NO_SESSION: Final = 0
"""The session id of a request or response without a session."""
INITIAL_EPOCH: Final = 0
"""The epoch of a request that wants a new session."""
FINAL_EPOCH: Final = -1
"""The epoch of a request that wants none; it ends the session that it names."""
_MAX_EPOCH: Final = (1 << 31) - 1


def next_epoch(epoch: int) -> int:
    """Return the epoch of the request that follows one with this epoch."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _MAX_EPOCH else epoch + 1


class FetchSession:
    """The partitions of one fetcher, in the order in which they are read.

    A partition that had records goes to the end, so that a busy one does not starve the others.
    `cached_size` and the two flags are as of the last `FetchSessionCacheShard.touch`. Thread rule: the
    broker's loop.
    """

    __slots__ = (
        "cached_size",
        "creation_ms",
        "epoch",
        "evictable_by_all",
        "evictable_by_privileged",
        "last_used_ms",
        "partitions",
        "privileged",
        "session_id",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        partitions: Iterable[CachedPartition],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.session_id = session_id
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.partitions = {partition.key: partition for partition in partitions}
        self.creation_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.cached_size = 0
        self.evictable_by_all = False
        self.evictable_by_privileged = False

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[CachedPartition]:
        return iter(self.partitions.values())

    def change(self, key: PartitionKey, fetch: FetchPartition) -> bool:
        """Take what a request asks of a partition; False if the session does not have it."""
        partition = self.partitions.get(key)
        if partition is None:
            return False
        partition.fetch = fetch
        return True

    def add(self, partition: CachedPartition) -> None:
        """Add a partition at the end."""
        self.partitions[partition.key] = partition

    def forget(self, key: PartitionKey) -> None:
        """Remove a partition, if the session has it."""
        self.partitions.pop(key, None)

    def move_to_end(self, key: PartitionKey) -> None:
        """Let all other partitions be read before this one."""
        self.partitions[key] = self.partitions.pop(key)
