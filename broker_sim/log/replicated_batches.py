"""The checks of what a follower appends; mirrors the follower's part of `LogValidator` and `UnifiedLog`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.log.append_info import OffsetsOutOfOrderError, UnexpectedAppendOffsetError
from broker_sim.protocol.record_batch import NO_PRODUCER_ID, BatchHeader, parse_header, split_batches, verify_crc
from broker_sim.protocol.records import read_end_txn_marker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.metadata.topic_partition import TopicPartition


def read_replicated_batches(
    buffers: bytes | memoryview | Iterable[bytes | memoryview],
    topic_partition: TopicPartition,
    log_end_offset: int,
    leader_epoch: int | None,
) -> list[tuple[BatchHeader, bytes]]:
    """Return the batches that a follower may append; see `PartitionLog.append_as_follower`.

    Raises `ApiError`: CORRUPT_MESSAGE, INVALID_RECORD for another format or a malformed transaction
    marker, `UnexpectedAppendOffsetError` for a batch that begins before the log's end,
    `OffsetsOutOfOrderError`.
    """
    batches: list[tuple[BatchHeader, bytes]] = []
    for buffer in (buffers,) if isinstance(buffers, bytes | memoryview) else buffers:
        if not _read_replicated_buffer(buffer, topic_partition, leader_epoch, batches):
            break
    if batches and batches[0][0].base_offset < log_end_offset:
        first_offset, last_offset = batches[0][0].base_offset, batches[-1][0].last_offset
        raise UnexpectedAppendOffsetError(
            f"Unexpected offset in append to {topic_partition}. First offset {first_offset} is "
            f"less than the next offset {log_end_offset}. Last offset in append: {last_offset}.",
            first_offset,
            last_offset,
        )
    return batches


def _read_replicated_buffer(
    buffer: bytes | memoryview,
    topic_partition: TopicPartition,
    leader_epoch: int | None,
    batches: list[tuple[BatchHeader, bytes]],
) -> bool:
    """Add the batches of one buffer; return False at a batch of a newer epoch, which ends the append."""
    last_offset = batches[-1][0].last_offset if batches else -1
    for view in split_batches(buffer):
        header = parse_header(view)
        if leader_epoch is not None and header.partition_leader_epoch > leader_epoch:
            return False
        verify_crc(view, header)
        if header.last_offset <= last_offset:
            raise OffsetsOutOfOrderError(
                f"Out of order offsets found in append to {topic_partition}: {header.last_offset} after {last_offset}"
            )
        last_offset = header.last_offset
        if header.is_control and header.records_count and header.producer_id != NO_PRODUCER_ID:
            read_end_txn_marker(view, header)  # raises for a marker that could not be applied later
        if isinstance(buffer, bytes) and len(view) == len(buffer):
            batches.append((header, buffer))
        else:
            batches.append((header, bytes(view)))
    return True
