"""What is worked out from the arrays of a `LogSegment`: the entries of its indexes, and spans.

A *span* is an entry that stands for several batches. A closed segment on disk has only such ones, so that few
entries stay in memory; mirrors how sparse Kafka's `OffsetIndex` is.

    positions     0         65 610        131 208       150 000
                  ├─ span ──┼─ span ──────┼─ last span ─┤
    index entry   no        yes           yes

Each span but the last has `SPAN_BYTES` or a little more, and each but the first begins with a batch that has an
entry in the offset index. Who asks for a batch within a span has its headers read: at most so many bytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from broker_sim.log.storage import SegmentIndexes
from broker_sim.protocol.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_sim.log.offset_index import OffsetIndex
    from broker_sim.log.storage import SegmentContent
    from broker_sim.log.transaction_index import AbortedTxn

__all__ = ["index_entries", "join_batches", "open_spans"]

SPAN_BYTES: Final = 64 * 1024


def join_batches(
    end_offsets: array[int],
    positions: array[int],
    max_timestamps: array[int],
    index: OffsetIndex,
) -> None:
    """Join the entries, one for each batch, to spans; the arrays are changed in place."""
    firsts, start = [0], positions[0]
    for batch in index.batches(positions):
        if positions[batch] - start >= SPAN_BYTES:
            firsts.append(batch)
            start = positions[batch]
    lasts = [first - 1 for first in firsts[1:]] + [len(end_offsets) - 1]
    end_offsets[:] = array("q", [end_offsets[last] for last in lasts])
    max_timestamps[:] = array("q", [max_timestamps[last] for last in lasts])
    positions[:] = array("q", [positions[first] for first in firsts] + [positions[-1]])


def open_spans(
    first: int,
    spans: Iterable[SegmentContent],
    end_offsets: array[int],
    positions: array[int],
    max_timestamps: array[int],
) -> None:
    """Put the batches of spans into the place of these, from the entry `first` on, in place."""
    ends, starts, timestamps = (
        array("q"),
        array("q"),
        array("q", max_timestamps[max(first - 1, 0) : first]),
    )
    count = 0
    for span in spans:
        count += 1
        ends.extend(span.end_offsets)
        starts.extend(span.positions[:-1])
        timestamps.extend(span.max_timestamps)
    end_offsets[first : first + count] = ends
    positions[first : first + count] = starts
    so_far = array("q", accumulate(timestamps, max))
    max_timestamps[first : first + count] = so_far[1:] if first else so_far


def index_entries(
    end_offsets: array[int],
    positions: array[int],
    max_timestamps: array[int],
    index: OffsetIndex,
    aborted: Sequence[AbortedTxn],
) -> SegmentIndexes:
    """Return the entries of the index files of a segment with one entry for each batch.

    The largest timestamp has an entry too, as in a segment that Kafka has rolled.
    """
    offsets, times = [], []
    newest = NO_TIMESTAMP
    for batch in index.batches(positions):
        offsets.append((end_offsets[batch] - 1, positions[batch] - positions[0]))
        if max_timestamps[batch] > newest:
            newest = max_timestamps[batch]
            times.append((newest, end_offsets[bisect_left(max_timestamps, newest)] - 1))
    if max_timestamps and max_timestamps[-1] > newest:
        newest = max_timestamps[-1]
        times.append((newest, end_offsets[bisect_left(max_timestamps, newest)] - 1))
    return SegmentIndexes(offsets, times, aborted)
