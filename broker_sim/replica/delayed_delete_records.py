"""A delete-records request that waits for all living replicas; mirrors ``DelayedDeleteRecords``.

It can be completed when every partition has come to one of these:

* Case A: the partition is no longer on this broker: unknown, wherever it may be now
* Case B: this broker is no longer its leader
* Case C: the low watermark has reached the offset asked for
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.delayed_request import DelayedRequest, first_error
from broker_sim.errors import ErrorCode
from broker_sim.replica.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.replica.delayed_produce import PartitionLookup
    from broker_sim.topic_partition import TopicPartition

__all__ = ["DelayedDeleteRecords", "DeleteRecordsPartitionStatus"]

INVALID_LOW_WATERMARK = -1


class DeleteRecordsPartitionStatus:
    """How far one partition's deletion has come."""

    __slots__ = ("acks_pending", "error_code", "low_watermark", "requested_offset")

    def __init__(
        self,
        error_code: ErrorCode,
        requested_offset: int = -1,
        low_watermark: int = INVALID_LOW_WATERMARK,
    ) -> None:
        self.error_code = error_code
        self.requested_offset = requested_offset
        self.low_watermark = low_watermark
        self.acks_pending = False

    @property
    def is_satisfied(self) -> bool:
        """Whether nothing is left to wait for."""
        return self.error_code is not ErrorCode.NONE or self.low_watermark >= self.requested_offset

    def await_low_watermark(self) -> None:
        """Wait for the replicas; what stands if they never come is REQUEST_TIMED_OUT."""
        if not self.is_satisfied:
            self.acks_pending = True
            self.error_code = ErrorCode.REQUEST_TIMED_OUT

    def end(self, error_code: ErrorCode, low_watermark: int = INVALID_LOW_WATERMARK) -> None:
        """Wait no more; until then the low watermark is that of the request's begin."""
        self.acks_pending = False
        self.error_code = error_code
        self.low_watermark = low_watermark


class DelayedDeleteRecords(DelayedRequest):
    """Parks the deletion until every replica has moved its log start, or ``delay_ms`` is over."""

    __slots__ = ("_partitions", "_respond", "_statuses")

    api = "DeleteRecords"

    def __init__(
        self,
        delay_ms: int,
        statuses: dict[TopicPartition, DeleteRecordsPartitionStatus],
        partitions: PartitionLookup,
        respond: Callable[[dict[TopicPartition, DeleteRecordsPartitionStatus]], None],
        client_id: str | None = None,
    ) -> None:
        super().__init__(delay_ms, client_id)
        self._statuses = statuses
        self._partitions = partitions
        self._respond = respond
        for status in statuses.values():
            status.await_low_watermark()

    def try_complete(self) -> bool:
        """Complete if no partition is awaited any more (cases A to C)."""
        pending = False
        for topic_partition, status in self._statuses.items():
            if not status.acks_pending:
                continue
            partition = self._partitions.get_partition_or_error(topic_partition)
            if not isinstance(partition, Partition):  # Case A
                status.end(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif not partition.is_leader:  # Case B
                status.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif partition.low_watermark >= status.requested_offset:  # Case C
                status.end(ErrorCode.NONE, partition.low_watermark)
            else:
                pending = True
        return not pending and self.force_complete()

    @property
    def error_code(self) -> ErrorCode:
        """The first partition's that is an error."""
        return first_error([status.error_code for status in self._statuses.values()])

    def on_expiration(self) -> None:
        """Nothing more: the partitions that are still awaited already say REQUEST_TIMED_OUT."""

    def on_complete(self) -> None:
        """Answer with what is known of every partition."""
        self._respond(self._statuses)
