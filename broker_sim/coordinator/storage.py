"""Where a coordinator's records go: the partitions of an internal topic.

Mirrors `PartitionWriter` and the reading side of `CoordinatorLoaderImpl`; the broker implements it on
its replica manager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.errors import ErrorCode
    from broker_sim.log import VerificationGuard


class CoordinatorStorage(Protocol):
    """The partitions of one internal topic that this broker hosts, by their numbers."""

    def append(
        self,
        partition: int,
        batch: bytes,
        timeout_ms: int,
        on_appended: Callable[[int], object],
        on_done: Callable[[ErrorCode], object],
        *,
        verification_guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> None:
        """Append a batch with the checks of acks=all.

        Those of its transaction are made too: by the guard where it has records of one, by the
        `transaction.version` where it is a marker.

        `on_appended(last_offset)` is called before this returns if the leader has appended; then
        `on_done(NONE)` when the in-sync replicas have it, or with REQUEST_TIMED_OUT, or
        NOT_LEADER_OR_FOLLOWER. If the append failed, only `on_done(error)` is called, at once.
        """

    def check_append(self, partition: int) -> ErrorCode:
        """Return the error that an append would fail with now, whatever the batch; NONE without one."""

    def log_end_offset(self, partition: int) -> int:
        """Return the offset that the next record gets; 0 without the partition."""

    def max_batch_bytes(self, partition: int) -> int:
        """Return the largest batch that the topic allows (`max.message.bytes`); 0 without the partition."""

    def await_committed(
        self, partition: int, end_offset: int, timeout_ms: int, on_done: Callable[[ErrorCode], object]
    ) -> None:
        """Call `on_done` when the in-sync replicas have all records before `end_offset`, as above."""

    def high_watermark(self, partition: int) -> int:
        """Return the offset below which everything is committed; 0 without the partition."""

    def read(self, partition: int) -> Iterator[bytes]:
        """Yield all batches of the partition's log, whole, from its start to its end."""
