"""The records of a share partition that are in flight, and its offsets; the state of `SharePartition`.

    start offset                             end offset
        │                                        │
    ────┼────────────┬────────────┬──────────────┼──────────────▶ offsets
        │   batch    │   batch    │    batch     │   not fetched yet
    all are done     some are acquired, some available again

The start offset (SPSO) moves on when all before it are in a terminal state, or when the log starts later. The end
offset is that of the last record in flight; without any it is where the next fetch begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.share.partition.in_flight_map import InFlightMap
from broker_sim.share.partition.record_state import RecordState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.share.partition.acquisition_lock import AcquisitionLocks
    from broker_sim.share.partition.in_flight_batch import InFlightBatch


class GapWindow:
    """Offsets below `end_offset` that the state read by a new leader does not tell of.

    Members of the leader before may have acquired them, and nothing was written of that. They are fetched
    again, from `gap_start_offset` on. All other gaps are natural: there are no records.
    """

    __slots__ = ("end_offset", "gap_start_offset")

    def __init__(self, end_offset: int, gap_start_offset: int) -> None:
        self.end_offset = end_offset
        self.gap_start_offset = gap_start_offset


class InFlightRecords:
    """Batches, offsets and counts. Thread rule: the broker's loop."""

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
        """Records in flight that are in a terminal state."""
        self.finds_next_fetch_offset = False
        """Whether records in flight may be available, so that the next fetch may begin at one of them."""
        self.gap_window: GapWindow | None = None

    # -- what is asked --------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many records are in flight."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def count_in(self, first_offset: int, last_offset: int) -> int:
        """Return how many of those offsets are not before the start offset."""
        return max(last_offset - max(self.start_offset, first_offset) + 1, 0)

    def is_start_within(self, first_offset: int, last_offset: int) -> bool:
        """Whether the start offset has moved into that range."""
        return first_offset < self.start_offset <= last_offset

    def divided(self, first_offset: int, last_offset: int) -> list[tuple[int, int]]:
        """Return the range, as two where the start offset has moved into it."""
        if not self.is_start_within(first_offset, last_offset):
            return [(first_offset, last_offset)]
        return [(first_offset, self.start_offset - 1), (self.start_offset, last_offset)]

    @property
    def active_gap_window(self) -> GapWindow | None:
        """The gap window, until something behind it is fetched."""
        window = self.gap_window
        return window if window is not None and window.end_offset == self.end_offset else None

    def next_fetch_offset(self) -> int:
        """Return where the next fetch begins: at the first record that may be acquired."""
        if not self.batches or self.start_offset > self.batches.last.last_offset:
            # Nothing is in flight: the end offset is that of the next record.
            self.finds_next_fetch_offset = False
            return self.end_offset
        if self.finds_next_fetch_offset:
            found = self._first_acquirable_offset()
            if found is not None:
                return found
            self.finds_next_fetch_offset = False
        return self.end_offset + 1

    def last_acquirable_offset(self, fetch_offset: int, max_records: int) -> int:
        """Return up to where a fetch from there may acquire: what is in flight, and so many records behind it."""
        return max(self.end_offset, fetch_offset - 1) + max_records

    def _first_acquirable_offset(self) -> int | None:
        """Return the first offset that is available or in the gap window."""
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
        """Note that everything before the offset has been fetched."""
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
            return False  # Kafka finds no state there and gives up
        state = batch.state_at(self.start_offset)
        return state.is_terminal and not state.has_ongoing_state_transition

    def maybe_move_start_offset(self) -> bool:
        """Move the start offset behind all that is done, and forget it; return whether there is any.

        Only whole batches are forgotten.
        """
        if not self.batches or not self.can_move_start_offset():
            return False
        done = self._last_terminal_offset()
        if done is None:
            return False
        last_offset, count = done
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
        """Return where the records end that are done without a break, and how many of them are in flight."""
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
        """Follow a log that starts later than the records in flight.

        What is available there is archived. What is acquired stays with its member until its lock ends.
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
        """Make one of the parts of batches in that range that stand alike."""
        floor = self.batches.floor(first_offset)
        start = first_offset if floor is None else floor.first_offset
        for batch in self.batches.between(start, last_offset):
            batch.merge(first_offset, last_offset)

    # -- archiving ------------------------------------------------------------------------------

    def archive_stale(self, fetch_offset: int, base_offset: int, locks: AcquisitionLocks) -> None:
        """Archive what is available between the two offsets: a fetch from the first began at the second.

        The records in between have been compacted away.
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
        """Archive the records of that state from `first_offset` to before `end_offset`.

        `counts` adds them to those that are done. Returns whether there were any.
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
            for first, last, one in batch.parts_in(first_offset, end_offset - 1):
                if one.state is state:
                    batch.cut_out(first, last, locks).archive()
                    archived += last - first + 1
        if counts:
            self.delivery_complete_count += archived
        return archived > 0
