"""An acks=all produce that waits for its followers; mirrors `kafka.server.DelayedProduce`.

It completes when one of these cases holds for every partition:

* Case A: the partition is no longer on this broker
* Case B: this broker is no longer the leader of the partition
* Case C: this broker leads the partition, and
    * C.1: the in-sync replicas have the records, but are now fewer than `min.insync.replicas`
    * C.2: the in-sync replicas have the records

A partition whose append failed waits with the others: all partitions are in one response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import RecordValidationError
from broker_sim.replica.delayed_acks import AwaitedPartition, DelayedAcks
from broker_sim.replica.partition import Partition

if TYPE_CHECKING:
    from broker_sim.log import LogAppendInfo

EXPECTED_APPEND_ERRORS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors that Kafka returns without the log start offset."""
# Python 3.11 takes 0.1 us to look up an enum member, and every append needs this one.
_NO_ERROR: Final = ErrorCode.NONE


class ProducePartitionStatus(AwaitedPartition):
    """The result of one partition's append, and whether it still waits for replicas."""

    __slots__ = (
        "base_offset",
        "error_message",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "required_offset",
    )

    def __init__(
        self,
        error_code: ErrorCode,
        *,
        required_offset: int = -1,
        base_offset: int = -1,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        error_message: str | None = None,
    ) -> None:
        super().__init__(error_code)
        self.required_offset = required_offset
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.error_message = error_message
        self.record_errors: tuple[tuple[int, str], ...] = ()
        """Index and message of each record for which the batch was refused."""

    @classmethod
    def appended(cls, info: LogAppendInfo) -> ProducePartitionStatus:
        """Return the status of an append that succeeded."""
        return cls(
            _NO_ERROR,
            required_offset=info.last_offset + 1,
            base_offset=info.first_offset,
            log_append_time_ms=info.log_append_time_ms,
            log_start_offset=info.log_start_offset,
        )

    @classmethod
    def refused(cls, error: ApiError, partition: Partition | None) -> ProducePartitionStatus:
        """Return the status of an append that failed; `partition` is None if this broker does not host it."""
        status = cls(error.error_code)
        if error.error_code not in EXPECTED_APPEND_ERRORS and partition and partition.is_leader:
            status.log_start_offset = partition.log.log_start_offset
        if error.error_code in {ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}:
            status.error_message = error.error_message
        if isinstance(error, RecordValidationError):
            status.error_message = str(error)
            status.record_errors = error.record_errors
        return status


class DelayedProduce(DelayedAcks[ProducePartitionStatus]):
    """Waits until its partitions are replicated or have failed, or for `delay_ms`."""

    __slots__ = ()

    api = "Produce"

    def try_partition(self, status: ProducePartitionStatus, partition: Partition | ErrorCode) -> None:
        """Check cases A to C."""
        if not isinstance(partition, Partition):  # Case A
            status.end(partition)
            return
        is_enough, error_code = partition.check_enough_replicas_reach_offset(status.required_offset)
        if is_enough or error_code:  # Cases B, C.1, C.2
            status.end(error_code)
