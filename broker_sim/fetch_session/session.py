"""One fetch session and its partitions; mirrors `kafka.server.FetchSession` and the epochs of `FetchMetadata`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim.replica import FetchPartition, FetchPartitionData

NO_SESSION: Final = 0
"""Session id of a request or response without a session."""
INITIAL_EPOCH: Final = 0
"""Epoch of a request for a new session."""
FINAL_EPOCH: Final = -1
"""Epoch of a request without a session; it closes the session that it names."""
PartitionKey = tuple[bytes | str, int]
"""Topic id (topic name in request versions before 13) and partition number."""
_MAX_EPOCH: Final = (1 << 31) - 1


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next request after one with this epoch."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _MAX_EPOCH else epoch + 1


class CachedPartition:
    """The fetch position of a partition, and the offsets last returned for it; mirrors `FetchSession.CachedPartition`.

    Every fetch request is parsed into these; a session keeps them. `topic` is empty while the topic id is
    unknown. `fetch` is replaced, never changed.
    """

    __slots__ = ("fetch", "high_watermark", "key", "log_start_offset", "topic")

    def __init__(self, key: PartitionKey, topic: str, fetch: FetchPartition) -> None:
        self.key = key
        self.topic = topic
        self.fetch = fetch
        self.high_watermark = -1
        self.log_start_offset = -1

    def has_news(self, data: FetchPartitionData) -> bool:
        """Whether the response must include `data`.

        It must for records, a changed high watermark or log start offset, a preferred read replica, an
        error and a diverging epoch; and for the first data after an error, even if nothing has changed.
        """
        return (
            data.size_bytes > 0
            or self.high_watermark != data.high_watermark
            or self.log_start_offset != data.log_start_offset
            or data.error_code != 0
            or data.preferred_read_replica >= 0
            or data.diverging_epoch is not None
        )

    def update_response_data(self, data: FetchPartitionData) -> None:
        """Store the offsets of `data`, which is being returned to the fetcher."""
        self.high_watermark = -1 if data.error_code else data.high_watermark
        self.log_start_offset = data.log_start_offset


class FetchSession:
    """The partitions of one fetcher, in the order in which they are read.

    A partition that returned records moves to the end, so that a busy one does not starve the others.
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

    def add(self, partition: CachedPartition) -> None:
        """Add a partition at the end; if the session has it already, only its fetch position changes."""
        member = self.partitions.setdefault(partition.key, partition)
        member.fetch = partition.fetch

    def forget(self, key: PartitionKey) -> None:
        """Remove a partition, if the session has it."""
        self.partitions.pop(key, None)

    def move_to_end(self, key: PartitionKey) -> None:
        """Move a partition behind all others."""
        self.partitions[key] = self.partitions.pop(key)
