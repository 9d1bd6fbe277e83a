"""The batches of a log, and of a fetch response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.log import PartitionLog


def batches_of(log: PartitionLog, end_offset: int | None = None) -> list[bytes | memoryview]:
    """Return the batches of a log from its start to `end_offset`, its end by default."""
    end = log.log_end_offset if end_offset is None else end_offset
    batches: list[bytes | memoryview] = []
    for segment in log.segments:
        data = segment.read(segment.base_offset, 1 << 40, end, min_one_message=False)
        if data is not None:
            batches += data.records
    # Batches read from a file come as one buffer.
    return list(batches_in(b"".join(batches))) if log.storage.is_persistent else batches


def batches_in(data: Any) -> Iterator[memoryview]:
    """Yield the complete batches of a fetch response; the last one may be cut off."""
    view = memoryview(data or b"")
    while len(view) >= BATCH_OVERHEAD_BYTES:
        size = parse_header(view).size_bytes
        if len(view) < size:
            break
        yield view[:size]
        view = view[size:]
