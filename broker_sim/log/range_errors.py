"""What is said of offsets that are not in a log; the messages are `UnifiedLog`'s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker_sim.metadata.topic_partition import TopicPartition


class Offsets(Protocol):
    """What a log says of itself."""

    topic_partition: TopicPartition
    log_start_offset: int
    high_watermark: int

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""


def deletion_above_high_watermark(log: Offsets, offset: int) -> ApiError:
    """Return the error of a log start that would pass the high watermark."""
    return ApiError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"Cannot increment the log start offset to {offset} of partition {log.topic_partition} since"
        f" it is larger than the high watermark {log.high_watermark}",
    )


def high_watermark_above_log_end(log: Offsets, offset: int) -> ValueError:
    """Return the error of a high watermark that would pass the log's end."""
    return ValueError(
        f"High watermark {offset} of {log.topic_partition} would exceed the log end offset {log.log_end_offset}"
    )


def read_outside_log(log: Offsets, offset: int) -> ApiError:
    """Return the error of a read before the log's start or after its end."""
    return ApiError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"Received request for offset {offset} for partition {log.topic_partition}, but we only"
        f" have log segments in the range {log.log_start_offset} to {log.log_end_offset}.",
    )
