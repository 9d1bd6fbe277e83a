"""The in-flight records and offsets of a share partition; the state of `SharePartition`.

    start offset                             end offset
        │                                        │
    ────┼────────────┬────────────┬──────────────┼──────────────▶ offsets
        │   batch    │   batch    │    batch     │   not fetched yet
    all completed    some are acquired, some available again

The start offset (SPSO) advances over records in a terminal state, and when the log start offset moves beyond it. The
end offset is that of the last record in flight; without records in flight it is the next fetch offset.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from broker_sim.share.partition.record_state import RecordState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker_sim.share.partition.acquisition_lock import AcquisitionLocks
    from broker_sim.share.partition.in_flight_batch import InFlightBatch


class InFlightMap:
    """Batches sorted by first offset; takes the place of Java's `ConcurrentSkipListMap`.

    Batches are usually added at the end and removed from the start.
    """

    __slots__ = ("_batches", "_first_offsets")

    def __init__(self) -> None:
        self._first_offsets: list[int] = []
        self._batches: list[InFlightBatch] = []

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self._batches)

    @property
    def first(self) -> InFlightBatch:
        """The first batch; the map must not be empty."""
        return self._batches[0]

    @property
    def last(self) -> InFlightBatch:
        """The last batch; the map must not be empty."""
        return self._batches[-1]

    def put(self, batch: InFlightBatch) -> None:
        """Add a batch, or replace the one that begins at the same offset."""
        first_offset = batch.first_offset
        index = bisect_left(self._first_offsets, first_offset)
        if index < len(self._batches) and self._first_offsets[index] == first_offset:
            self._batches[index] = batch
        else:
            self._first_offsets.insert(index, first_offset)
            self._batches.insert(index, batch)

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that begins at or before the offset, None if there is none."""
        index = bisect_right(self._first_offsets, offset)
        return self._batches[index - 1] if index else None

    def higher(self, offset: int) -> InFlightBatch | None:
        """Return the first batch that begins after the offset, None if there is none."""
        index = bisect_right(self._first_offsets, offset)
        return self._batches[index] if index < len(self._batches) else None

    def between(self, first_offset: int, last_offset: int) -> Sequence[InFlightBatch]:
        """Return the batches that begin in that inclusive range."""
        start = bisect_left(self._first_offsets, first_offset)
        return self._batches[start : bisect_right(self._first_offsets, last_offset)]

    def remove_before(self, offset: int) -> None:
        """Remove the batches that begin before the offset."""
        count = bisect_left(self._first_offsets, offset)
        del self._first_offsets[:count], self._batches[:count]

    def clear(self) -> None:
        """Remove all batches."""
        self._first_offsets.clear()
        self._batches.clear()


class GapWindow:
    """Offsets below `end_offset` that are missing in the state read by a new leader.

    Members may have acquired these records from the previous leader, which is not persisted. They are fetched again,
    from `gap_start_offset` on. In all other gaps the log has no records.
    """

    __slots__ = ("end_offset", "gap_start_offset")

    def __init__(self, end_offset: int, gap_start_offset: int) -> None:
        self.end_offset = end_offset
        self.gap_start_offset = gap_start_offset


class InFlightRecords:
    """The batches in flight, with their offsets and counts. Thread rule: the broker's loop."""

    __slots__ = (
        "batches",
        "delivery_complete_count",
        "end_offset",
        "finds_next_fetch_offset",
        "gap_window",
        "start_offset",
    )

    def __init__(self) -> None:
        self.batches = InFlightMap()
        self.start_offset = 0
        self.end_offset = 0
        self.delivery_complete_count = 0
        """Number of records in flight in a terminal state."""
        self.finds_next_fetch_offset = False
        """Whether records in flight may be available, so that the next fetch offset must be searched for."""
        self.gap_window: GapWindow | None = None

    # -- counts and offsets -----------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of records in flight."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def count_in(self, first_offset: int, last_offset: int) -> int:
        """Return the number of offsets in that range from the start offset on."""
        return max(last_offset - max(self.start_offset, first_offset) + 1, 0)

    def is_start_within(self, first_offset: int, last_offset: int) -> bool:
        """Whether the start offset is inside that range, after its first offset."""
        return first_offset < self.start_offset <= last_offset

    def divided(self, first_offset: int, last_offset: int) -> list[tuple[int, int]]:
        """Return the range, divided in two if the start offset is inside it."""
        if not self.is_start_within(first_offset, last_offset):
            return [(first_offset, last_offset)]
        return [(first_offset, self.start_offset - 1), (self.start_offset, last_offset)]

    @property
    def active_gap_window(self) -> GapWindow | None:
        """The gap window, None once records after it are in flight."""
        window = self.gap_window
        return window if window is not None and window.end_offset == self.end_offset else None

    def next_fetch_offset(self) -> int:
        """Return the first offset that may be acquired."""
        if not self.batches or self.start_offset > self.batches.last.last_offset:
            # Nothing is in flight: the end offset is the next offset.
            self.finds_next_fetch_offset = False
            return self.end_offset
        if self.finds_next_fetch_offset:
            offset = self._first_acquirable_offset()
            if offset is not None:
                return offset
            self.finds_next_fetch_offset = False
        return self.end_offset + 1

    def last_acquirable_offset(self, fetch_offset: int, max_records: int) -> int:
        """Return the last offset that a fetch may acquire: `max_records` after the records in flight."""
        return max(self.end_offset, fetch_offset - 1) + max_records

    def _first_acquirable_offset(self) -> int | None:
        """Return the first available offset, or the start of the gap window if that is lower; None without either."""
        window = self.active_gap_window
        gap_start = -1 if window is None else window.gap_start_offset
        for batch in self.batches:
            if window is not None:
                if batch.first_offset > gap_start:
                    return gap_start
                gap_start = max(batch.last_offset + 1, gap_start)
            for first_offset, _, state in batch.parts():
                if state.is_acquirable:
                    return first_offset
        return None

    # -- the start offset -----------------------------------------------------------------------

    def narrow_gap_window(self, offset: int) -> None:
        """Shrink the gap window: all records before the offset have been fetched."""
        window = self.gap_window
        if window is None:
            return
        if window.end_offset == self.end_offset and offset <= window.end_offset:
            window.gap_start_offset = offset
        else:
            self.gap_window = None

    def can_move_start_offset(self) -> bool:
        """Whether the record at the start offset is in a terminal state."""
        batch = self.batches.floor(self.start_offset)
        if batch is None:  # the gap window begins at the start offset
            return False
        if batch.batch_state is None and batch.last_offset < self.start_offset:
            return False  # as in Kafka, which has no state there
        state = batch.state_at(self.start_offset)
        return state.is_terminal and not state.has_ongoing_state_transition

    def maybe_move_start_offset(self) -> bool:
        """Advance the start offset over completed records, and remove them; return whether there were any.

        Only complete batches are removed.
        """
        if not self.batches or not self.can_move_start_offset():
            return False
        completed = self._last_terminal_offset()
        if completed is None:
            return False
        last_offset, count = completed
        if last_offset == self.batches.last.last_offset:
            self.start_offset = self.end_offset = last_offset + 1
            self.batches.clear()
            self.delivery_complete_count = 0
            return True
        batch = self.batches.floor(last_offset)
        assert batch is not None
        if last_offset == batch.last_offset:
            following = self.batches.higher(last_offset)
            assert following is not None
            self.start_offset = max(self.start_offset, following.first_offset)
            window = self.active_gap_window
            if window is not None:
                self.start_offset = min(window.gap_start_offset, self.start_offset)
            self.batches.remove_before(following.first_offset)
        else:
            self.start_offset = max(self.start_offset, last_offset + 1)
            self.batches.remove_before(batch.first_offset)
            batch.forget_before(last_offset + 1)
        self.delivery_complete_count -= count
        return True

    def _last_terminal_offset(self) -> tuple[int, int] | None:
        """Return the last offset and number of completed records at the start; None without any."""
        last_offset, count = -1, 0
        window = self.active_gap_window
        for batch in self.batches:
            if window is not None and batch.last_offset >= window.gap_start_offset:
                break
            for first, last, state in batch.parts():
                if state.has_ongoing_state_transition or not state.is_terminal:
                    return None if last_offset < 0 else (last_offset, count)
                last_offset = last
                count += self.count_in(first, last)
        return None if last_offset < 0 else (last_offset, count)

    def log_start_moved(self, log_start_offset: int, locks: AcquisitionLocks) -> None:
        """Advance the start offset to the log start offset.

        Available records before it are archived. Acquired ones stay with their member until their lock times out.
        """
        if log_start_offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        removed = self._terminal_count_before(log_start_offset)
        if self.archive(self.batches, self.start_offset, log_start_offset, RecordState.AVAILABLE, locks, counts=False):
            self.finds_next_fetch_offset = True
        self.start_offset = log_start_offset
        self.delivery_complete_count -= removed
        self.end_offset = max(self.end_offset, log_start_offset)

    def _terminal_count_before(self, end_offset: int) -> int:
        count = 0
        for batch in self.batches:
            if batch.first_offset >= end_offset:
                break
            for first, last, state in batch.parts():
                if state.is_terminal:
                    count += self.count_in(first, min(last, end_offset - 1))
        return count

    def merge(self, first_offset: int, last_offset: int) -> None:
        """Join equal parts of batches in that range."""
        floor = self.batches.floor(first_offset)
        start = first_offset if floor is None else floor.first_offset
        for batch in self.batches.between(start, last_offset):
            batch.merge(first_offset, last_offset)

    # -- archiving ------------------------------------------------------------------------------

    def archive_stale(self, fetch_offset: int, base_offset: int, locks: AcquisitionLocks) -> None:
        """Archive available records from `fetch_offset` to before `base_offset`, the first offset that was fetched.

        They have been compacted away.
        """
        if not self.batches or fetch_offset >= base_offset:
            return
        floor = self.batches.floor(fetch_offset)
        is_inside = floor is not None and floor.last_offset >= fetch_offset
        first = floor.first_offset if floor is not None and is_inside else fetch_offset
        stale = self.batches.between(first, base_offset - 1)
        if self.archive(stale, fetch_offset, base_offset, RecordState.AVAILABLE, locks, counts=True):
            self.finds_next_fetch_offset = True

    def archive(
        self,
        batches: Iterable[InFlightBatch],
        first_offset: int,
        end_offset: int,
        state: RecordState,
        locks: AcquisitionLocks,
        *,
        counts: bool,
    ) -> bool:
        """Archive the records in `state` from `first_offset` to before `end_offset`.

        `counts` adds them to `delivery_complete_count`. Returns whether there were any.
        """
        archived = 0
        for batch in batches:
            if batch.first_offset >= end_offset:
                break
            whole = batch.batch_state
            if whole is not None:
                if whole.state is not state:
                    continue
                if batch.is_within(first_offset, end_offset - 1):
                    whole.archive()
                    archived += batch.record_count
                    continue
                batch.split(locks)
            for first, last, part in batch.parts_in(first_offset, end_offset - 1):
                if part.state is state:
                    batch.cut_out(first, last, locks).archive()
                    archived += last - first + 1
        if counts:
            self.delivery_complete_count += archived
        return archived > 0
