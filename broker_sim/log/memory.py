"""The memory that the logs of a cluster use, and its limit, which mirrors a full disk in Kafka.

All replicas of a cluster live in one process, and a batch is one object for all replicas that have it.
So a partition uses as much memory as its largest replica, and the cluster the sum of its partitions:

    MemoryAccount       the cluster: used bytes, limit
     └ PartitionMemory  one partition: the largest of its replicas
        └ ReplicaMemory one log: the bytes of its batches

Above half of the limit, memory is *tight*: records that Kafka would delete at its next retention check or
checkpoint are deleted at once. At the limit, clients' appends fail with KAFKA_STORAGE_ERROR, as on a
broker with a full disk, but the broker keeps running and the next append may succeed.

Large requests use memory too, until they are answered. An eighth of the limit is reserved for them, so that
requests that do not fit into full logs can still be refused; beyond that they share the memory of the logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock

    from broker_sim.metadata.topic_partition import TopicPartition

log = get_logger(__name__)

NO_LIMIT: Final = 1 << 62
BATCH_OVERHEAD_BYTES: Final = 120
"""Memory of a batch besides its bytes: the object, and its entries in the lists of three replicas."""
SHARE_OF_REQUESTS: Final = 8
"""Divisor of the limit; the quotient is reserved for requests."""
RECLAIM_PERIOD_MS: Final = 1_000
RETURN_BYTES: Final = 16 * 1024 * 1024
"""Freed bytes after which `on_freed` is called, so that they can be returned to the machine."""


class MemoryAccount:
    """The memory of one cluster's logs and large requests. Thread rule: only the scheduler's thread."""

    def __init__(
        self,
        limit_bytes: int = NO_LIMIT,
        clock: Clock | None = None,
        *,
        reclaim: Callable[[], object] = lambda: None,
        on_freed: Callable[[], object] = lambda: None,
    ) -> None:
        """`reclaim()` deletes records that may be deleted; `on_freed()` is called after every 16 MB freed."""
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        """Bytes of the logs, and of requests beyond their reserved share."""
        self._request_bytes = 0
        self._clock = clock
        self._reclaim = reclaim
        self._on_freed = on_freed
        self._partitions: dict[tuple[TopicPartition, bytes], PartitionMemory] = {}
        self._freed_bytes = 0
        self._is_full = False
        self._next_reclaim_ms = 0

    @property
    def is_tight(self) -> bool:
        """Whether more than half of the limit is used."""
        return self.used_bytes * 2 > self.limit_bytes

    def open_replica(self, topic_partition: TopicPartition, topic_id: bytes) -> ReplicaMemory:
        """Return the memory of a new, empty log."""
        key = (topic_partition, topic_id)
        partition = self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = PartitionMemory(self, key)
        return ReplicaMemory(partition)

    def forget(self, key: tuple[TopicPartition, bytes]) -> None:
        """Drop a partition without replicas."""
        self._partitions.pop(key, None)

    def grow(self, more_bytes: int) -> None:
        """Add to the used bytes; a negative number frees."""
        self.used_bytes += more_bytes
        if more_bytes >= 0:
            return
        self._freed_bytes -= more_bytes
        if self._freed_bytes >= RETURN_BYTES:
            self._freed_bytes = 0
            self._on_freed()
        if self._is_full and self.used_bytes * 10 < self.limit_bytes * 9:
            self._is_full = False
            log.bind(self._clock).info("memory_limit_left", used_bytes=self.used_bytes)

    def grow_requests(self, more_bytes: int) -> bool:
        """Add to the bytes of requests, a negative number frees; return False if there is no room."""
        before = self._request_bytes
        after = before + more_bytes
        share = self.limit_bytes // SHARE_OF_REQUESTS
        beyond_share = max(0, after - share) - max(0, before - share)
        if beyond_share > 0 and self.used_bytes + beyond_share > self.limit_bytes:
            return False
        self._request_bytes = after
        self.grow(beyond_share)
        return True

    def make_room(self, needed_bytes: int) -> None:
        """Delete records that may be deleted; raise KAFKA_STORAGE_ERROR if that is not enough."""
        now_ms = 0 if self._clock is None else self._clock.now_ms()
        if now_ms >= self._next_reclaim_ms:
            self._next_reclaim_ms = now_ms + RECLAIM_PERIOD_MS
            self._reclaim()
            if self.used_bytes + needed_bytes <= self.limit_bytes:
                return
        if not self._is_full:
            self._is_full = True
            log.bind(self._clock).error(
                "memory_limit_reached",
                used_bytes=self.used_bytes,
                limit_bytes=self.limit_bytes,
                remedy="delete topics or records, set retention.bytes and segment.bytes, "
                "or start with a larger memory limit",
            )
        raise ApiError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"The cluster's logs use {self.used_bytes} bytes of memory, limit {self.limit_bytes}; "
            "delete topics or records, or start the cluster with a larger memory limit",
        )


class PartitionMemory:
    """The memory of one partition: that of its largest replica."""

    __slots__ = ("account", "key", "replicas", "used_bytes")

    def __init__(self, account: MemoryAccount, key: tuple[TopicPartition, bytes]) -> None:
        self.account = account
        self.key = key
        self.replicas: list[ReplicaMemory] = []
        self.used_bytes = 0

    def count(self) -> None:
        """Recompute the used bytes after a replica has shrunk."""
        used_bytes = max((replica.used_bytes for replica in self.replicas), default=0)
        freed_bytes, self.used_bytes = self.used_bytes - used_bytes, used_bytes
        if freed_bytes:
            self.account.grow(-freed_bytes)


class ReplicaMemory:
    """The memory of one log."""

    __slots__ = ("_account", "_partition", "used_bytes")

    def __init__(self, partition: PartitionMemory) -> None:
        self.used_bytes = 0
        self._partition = partition
        self._account = partition.account
        partition.replicas.append(self)

    @property
    def is_tight(self) -> bool:
        """Whether deletable records should be deleted at once."""
        return self._account.is_tight

    def check_room(self, needed_bytes: int) -> None:
        """Raise KAFKA_STORAGE_ERROR if the cluster has no room for `needed_bytes`."""
        account = self._account
        if account.used_bytes + needed_bytes > account.limit_bytes:
            account.make_room(needed_bytes)

    def append(self, size_bytes: int) -> None:
        """Add the size of a batch."""
        used_bytes = self.used_bytes = self.used_bytes + size_bytes + BATCH_OVERHEAD_BYTES
        partition = self._partition
        more_bytes = used_bytes - partition.used_bytes
        if more_bytes > 0:
            partition.used_bytes = used_bytes
            self._account.used_bytes += more_bytes

    def shrink_to(self, used_bytes: int) -> None:
        """Set the used bytes after the log has dropped batches."""
        if used_bytes != self.used_bytes:
            self.used_bytes = used_bytes
            self._partition.count()

    def close(self) -> None:
        """Remove the deleted log from the account."""
        partition = self._partition
        partition.replicas.remove(self)
        partition.count()
        if not partition.replicas:
            self._account.forget(partition.key)


def unlimited_memory(topic_partition: TopicPartition) -> ReplicaMemory:
    """Return the memory of a log outside any cluster, without a limit."""
    return MemoryAccount().open_replica(topic_partition, b"")
