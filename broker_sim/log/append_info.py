"""What appends and reads of a log return; mirrors ``LogAppendInfo``, ``FetchDataInfo`` and friends."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "EMPTY_APPEND",
    "AppendOrigin",
    "FetchDataInfo",
    "LogAppendInfo",
    "OffsetsOutOfOrderError",
    "RecordError",
    "RecordValidationError",
    "TimestampAndOffset",
    "UnexpectedAppendOffsetError",
]


class AppendOrigin(StrEnum):
    """Who appends; only a client's batches go through every check."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class LogAppendInfo:
    """What one append did; to be read only.

    ``log_append_time_ms`` is -1 for CreateTime; of a duplicate it is the time stamp of the batch
    that is in the log already, and the offsets are those of that batch.
    """

    __slots__ = (
        "first_offset",
        "is_duplicate",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "max_timestamp",
        "records_count",
        "valid_bytes",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        log_append_time_ms: int,
        log_start_offset: int,
        records_count: int,
        valid_bytes: int,
        is_duplicate: bool,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.records_count = records_count
        self.valid_bytes = valid_bytes
        self.is_duplicate = is_duplicate


EMPTY_APPEND: Final = LogAppendInfo(-1, -1, -1, -1, -1, 0, 0, False)
"""The answer to an append without one whole batch."""


class FetchDataInfo:
    """Records read: whole batches by reference, the last one possibly cut; to be read only.

    ``position`` is the read's start as bytes since the log's begin, ``end_offset`` the offset after
    the last batch of which anything was read. ``first_entry_incomplete`` says that the limit was
    smaller than the first batch.
    """

    __slots__ = (
        "end_offset",
        "fetch_offset",
        "first_entry_incomplete",
        "position",
        "records",
        "size_bytes",
    )

    def __init__(
        self,
        records: Sequence[bytes | memoryview],
        size_bytes: int,
        fetch_offset: int,
        position: int,
        end_offset: int,
        first_entry_incomplete: bool = False,
    ) -> None:
        self.records = records
        self.size_bytes = size_bytes
        self.fetch_offset = fetch_offset
        self.position = position
        self.end_offset = end_offset
        self.first_entry_incomplete = first_entry_incomplete


class TimestampAndOffset(NamedTuple):
    """The answer to a look-up by time; ``leader_epoch`` is -1 where none is known."""

    timestamp: int
    offset: int
    leader_epoch: int


class RecordError(NamedTuple):
    """Why one record of a batch was refused."""

    batch_index: int
    message: str


class RecordValidationError(ApiError):
    """A batch is refused because of the records named in ``record_errors``."""

    def __init__(
        self, error_code: ErrorCode, message: str, record_errors: tuple[RecordError, ...]
    ) -> None:
        super().__init__(error_code, message)
        self.record_errors = record_errors


class UnexpectedAppendOffsetError(ApiError):
    """A follower was given a batch that begins before the end of its log."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class OffsetsOutOfOrderError(ApiError):
    """A follower was given batches whose offsets do not increase."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
