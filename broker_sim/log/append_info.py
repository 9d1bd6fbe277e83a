"""What appends and reads of a log return; mirrors ``LogAppendInfo``, ``FetchDataInfo`` and friends."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - native code looks the types of fields up
from enum import StrEnum
from typing import Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode

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


class LogAppendInfo(NamedTuple):
    """What one append did.

    ``log_append_time_ms`` is -1 for CreateTime; of a duplicate it is the time stamp of the batch
    that is in the log already, and the offsets are those of that batch.
    """

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time_ms: int
    log_start_offset: int
    records_count: int
    valid_bytes: int
    is_duplicate: bool


EMPTY_APPEND: Final = LogAppendInfo(-1, -1, -1, -1, -1, 0, 0, False)
"""The answer to an append without one whole batch."""


class FetchDataInfo(NamedTuple):
    """Records read: whole batches by reference, the last one possibly cut.

    ``position`` is the read's start as bytes since the log's begin, ``end_offset`` the offset after
    the last batch of which anything was read. ``first_entry_incomplete`` says that the limit was
    smaller than the first batch.
    """

    records: Sequence[bytes | memoryview]
    size_bytes: int
    fetch_offset: int
    position: int
    end_offset: int
    first_entry_incomplete: bool = False


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
