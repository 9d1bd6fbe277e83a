"""A delete-records request that waits for all live replicas; mirrors `DelayedDeleteRecords`.

It completes when one of these cases holds for every partition:

* Case A: the partition is no longer on this broker
* Case B: this broker is no longer the leader of the partition
* Case C: the low watermark has reached the requested offset
"""

from __future__ import annotations

from broker_sim.errors import ErrorCode
from broker_sim.replica.delayed_acks import AwaitedPartition, DelayedAcks
from broker_sim.replica.partition import Partition

INVALID_LOW_WATERMARK = -1


class DeleteRecordsPartitionStatus(AwaitedPartition):
    """The state of one partition's deletion."""

    __slots__ = ("low_watermark", "requested_offset")

    def __init__(
        self, error_code: ErrorCode, requested_offset: int = -1, low_watermark: int = INVALID_LOW_WATERMARK
    ) -> None:
        super().__init__(error_code)
        self.requested_offset = requested_offset
        self.low_watermark = low_watermark

    @property
    def is_satisfied(self) -> bool:
        """Whether nothing is left to wait for."""
        return bool(self.error_code) or self.low_watermark >= self.requested_offset

    def end(self, error_code: ErrorCode, low_watermark: int = INVALID_LOW_WATERMARK) -> None:
        """Stop waiting; until then `low_watermark` is its value when the request arrived."""
        super().end(error_code)
        self.low_watermark = low_watermark


class DelayedDeleteRecords(DelayedAcks[DeleteRecordsPartitionStatus]):
    """Waits until every replica has moved its log start, or for `delay_ms`."""

    __slots__ = ()

    api = "DeleteRecords"

    def try_partition(self, status: DeleteRecordsPartitionStatus, partition: Partition | ErrorCode) -> None:
        """Check cases A to C."""
        if not isinstance(partition, Partition):  # Case A
            status.end(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif not partition.is_leader:  # Case B
            status.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif partition.low_watermark >= status.requested_offset:  # Case C
            status.end(ErrorCode.NONE, partition.low_watermark)
