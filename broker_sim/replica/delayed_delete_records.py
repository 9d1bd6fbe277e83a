"""A delete-records request that waits for all living replicas; mirrors `DelayedDeleteRecords`.

It can be completed when every partition has come to one of these:

* Case A: the partition is no longer on this broker: unknown, wherever it may be now
* Case B: this broker is no longer its leader
* Case C: the low watermark has reached the offset asked for
"""

from __future__ import annotations

from broker_sim.errors import ErrorCode
from broker_sim.replica.delayed_acks import AwaitedPartition, DelayedAcks
from broker_sim.replica.partition import Partition

__all__ = ["DelayedDeleteRecords", "DeleteRecordsPartitionStatus"]

INVALID_LOW_WATERMARK = -1


class DeleteRecordsPartitionStatus(AwaitedPartition):
    """How far one partition's deletion has come."""

    __slots__ = ("low_watermark", "requested_offset")

    def __init__(
        self,
        error_code: ErrorCode,
        requested_offset: int = -1,
        low_watermark: int = INVALID_LOW_WATERMARK,
    ) -> None:
        super().__init__(error_code)
        self.requested_offset = requested_offset
        self.low_watermark = low_watermark

    @property
    def is_satisfied(self) -> bool:
        """Whether nothing is left to wait for."""
        return bool(self.error_code) or self.low_watermark >= self.requested_offset

    def end(self, error_code: ErrorCode, low_watermark: int = INVALID_LOW_WATERMARK) -> None:
        """Wait no more; until then the low watermark is that of the request's begin."""
        super().end(error_code)
        self.low_watermark = low_watermark


class DelayedDeleteRecords(DelayedAcks[DeleteRecordsPartitionStatus]):
    """Parks the deletion until every replica has moved its log start, or `delay_ms` is over."""

    __slots__ = ()

    api = "DeleteRecords"

    def try_partition(
        self, status: DeleteRecordsPartitionStatus, partition: Partition | ErrorCode
    ) -> None:
        """Look at the cases A to C."""
        if not isinstance(partition, Partition):  # Case A
            status.end(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif not partition.is_leader:  # Case B
            status.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif partition.low_watermark >= status.requested_offset:  # Case C
            status.end(ErrorCode.NONE, partition.low_watermark)
