"""Results of appends and reads of a log; mirrors `LogAppendInfo`, `FetchDataInfo` and their errors."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.log.producer_state_entry import BatchMetadata
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.protocol.file_view import FileView
    from broker_sim.protocol.record_batch import BatchHeader

_SHOWN_ERRORS: Final = 3


class AppendOrigin(StrEnum):
    """The writer of a batch; only a client's batches are checked completely."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    BUILT_HERE = "built here"
    """A coordinator whose batch this process has just built; Kafka makes no such distinction."""


class LogAppendInfo:
    """The result of one append.

    `log_append_time_ms` is -1 for CreateTime. A duplicate has the offsets of the batch that is in
    the log already, and that batch's timestamp as its `log_append_time_ms`, as in Kafka.
    """

    __slots__ = (
        "first_offset",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "max_timestamp",
        "valid_bytes",
    )

    def __init__(self, first_offset: int, last_offset: int, max_timestamp: int, valid_bytes: int) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp
        self.valid_bytes = valid_bytes
        self.log_append_time_ms = NO_TIMESTAMP
        self.log_start_offset = -1

    @classmethod
    def of_duplicate(cls, batch: BatchMetadata, retry: LogAppendInfo) -> LogAppendInfo:
        """Return the result for a producer's retry of `batch`, which is already in the log."""
        info = cls(batch.first_offset, batch.last_offset, batch.timestamp, retry.valid_bytes)
        info.log_append_time_ms = batch.timestamp
        info.log_start_offset = retry.log_start_offset
        return info

    @classmethod
    def of_replicated(cls, batches: Sequence[tuple[BatchHeader, bytes]]) -> LogAppendInfo:
        """Return the result of a follower's append of one batch or more, in the order of their offsets."""
        first, batch = batches[0]
        last_offset, max_timestamp, size_bytes = first.last_offset, first.max_timestamp, len(batch)
        for header, batch in batches[1:]:
            last_offset = header.last_offset
            max_timestamp = max(max_timestamp, header.max_timestamp)
            size_bytes += len(batch)
        return cls(first.base_offset, last_offset, max_timestamp, size_bytes)

    def too_large_for_segment(self, topic_partition: TopicPartition, max_bytes: int) -> ApiError:
        """Return the error of an append that no segment of `max_bytes` can hold."""
        return ApiError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {self.valid_bytes} bytes in append to partition "
            f"{topic_partition}, which exceeds the maximum configured segment size of {max_bytes}.",
        )


EMPTY_APPEND: Final = LogAppendInfo(-1, -1, NO_TIMESTAMP, 0)
"""The result of an append without a whole batch."""


class FetchDataInfo:
    """Records read: whole batches by reference, the last one possibly truncated; read-only.

    `first_entry_incomplete` is true if the limit was smaller than the first batch. A `view` takes the place of
    `records` if the reader asked for one and the records are many.
    """

    __slots__ = ("first_entry_incomplete", "records", "size_bytes", "view")

    def __init__(
        self,
        records: Sequence[bytes | memoryview],
        size_bytes: int,
        first_entry_incomplete: bool = False,
        view: FileView | None = None,
    ) -> None:
        self.records = records
        self.size_bytes = size_bytes
        self.view = view
        self.first_entry_incomplete = first_entry_incomplete


EMPTY_FETCH: Final = FetchDataInfo((), 0)
"""The result of a read without any bytes."""


class TimestampAndOffset(NamedTuple):
    """The result of a look-up by time; `leader_epoch` is -1 where it is unknown."""

    timestamp: int
    offset: int
    leader_epoch: int


class RecordError(NamedTuple):
    """The error of one record of a batch."""

    batch_index: int
    message: str


class RecordValidationError(ApiError):
    """A batch was refused because of the records in `record_errors`."""

    def __init__(self, error_code: ErrorCode, message: str, record_errors: tuple[RecordError, ...]) -> None:
        super().__init__(error_code, message)
        self.record_errors = record_errors


def record_validation_error(errors: list[RecordError], bad_timestamp: bool) -> RecordValidationError:
    """Return the error of a refused batch; an invalid timestamp among its errors has a code of its own."""
    if bad_timestamp:
        return RecordValidationError(
            ErrorCode.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            tuple(errors),
        )
    first_errors = ", ".join(
        f"RecordError(batchIndex={error.batch_index}, message='{error.message}')" for error in errors[:_SHOWN_ERRORS]
    )
    return RecordValidationError(
        ErrorCode.INVALID_RECORD,
        f"One or more records have been rejected due to {len(errors)} record errors in total, "
        f"and only showing the first three errors at most: [{first_errors}]",
        tuple(errors),
    )


class UnexpectedAppendOffsetError(ApiError):
    """A follower received a batch that begins before the end of its log."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class OffsetsOutOfOrderError(ApiError):
    """A follower received batches whose offsets do not increase."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
