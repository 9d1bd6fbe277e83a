"""What is said of offsets that are not in a log; the messages are `UnifiedLog`'s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker_sim.metadata.topic_partition import TopicPartition

__all__ = ["deletion_above_high_watermark", "read_outside_log"]


def deletion_above_high_watermark(
    topic_partition: TopicPartition, offset: int, high_watermark: int
) -> ApiError:
    """Return the error of a log start that would pass the high watermark."""
    return ApiError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"Cannot increment the log start offset to {offset} of partition {topic_partition} since it"
        f" is larger than the high watermark {high_watermark}",
    )


def read_outside_log(
    topic_partition: TopicPartition, offset: int, log_start_offset: int, log_end_offset: int
) -> ApiError:
    """Return the error of a read before the log's start or after its end."""
    return ApiError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"Received request for offset {offset} for partition {topic_partition}, but we only have log"
        f" segments in the range {log_start_offset} to {log_end_offset}.",
    )
