"""Look-up of a file's batches by its mapped indexes; mirrors `LogSegment.translateOffset`.

    .index       0      4 180    8 330                    positions of the batches with an entry
    .log         ├─┬──┬─┼─┬────┬─┼──┬──────┬────┤
                        └ found ─┘                        an interval: its headers are read, up to the next entry

Memory has no entries of single batches, only the end offset, the largest timestamp, and the verified ranges of the
`.log`.

No index is trusted. Both entries around a batch must match the headers of their batches, and the batches between
them must be contiguous. Otherwise the whole file is scanned: either it is damaged, and the log goes offline, or an
index is wrong and is rewritten. Every range is verified before it is served, once if it is read in order: a batch
with a wrong size or offset is never served.

Deliberate difference: Kafka trusts its indexes, and verifies no batch after the one where a read begins.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar

from broker_sim.log.storage.batch_entries import BatchEntries
from broker_sim.log.storage.batch_scan import BatchDamagedError, LogHistory, scan_segment, settled, walk_batches
from broker_sim.log.storage.index_files import (
    INDEX_SUFFIX,
    OFFSET_ENTRY,
    TIME_ENTRY,
    TIME_INDEX_SUFFIX,
    IndexMismatchError,
    MappedIndex,
)
from broker_sim.log.storage.index_restore import is_gap, restore_indexes
from broker_sim.protocol.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.log.storage.batch_entries import BatchPlace
    from broker_sim.log.storage.index_files import IndexEntries
    from broker_sim.log.storage.segment_file import SegmentFile

MAX_RANGES: Final = 64
"""Maximum number of ranges; beyond it the shortest one is dropped."""
MAX_TAIL_BYTES: Final = 8 * 1024 * 1024
"""Maximum distance in bytes from the last entry of an index to the end of the file."""
_Result = TypeVar("_Result")


class CheckedRanges:
    """The verified parts of a file: disjoint ranges of positions, in order; adjacent ones are merged."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts = array("q")
        self._ends = array("q")

    def __len__(self) -> int:
        return len(self._starts)

    def end_of(self, position: int) -> int:
        """Return the end of the range that contains the position, or the position itself."""
        at = bisect_right(self._starts, position) - 1
        return max(position, self._ends[at]) if at >= 0 else position

    def add(self, start: int, end: int) -> None:
        """Add a range."""
        starts, ends = self._starts, self._ends
        first, last = bisect_left(ends, start), bisect_right(starts, end)
        if first < last:
            start, end = min(start, starts[first]), max(end, ends[last - 1])
        starts[first:last] = array("q", (start,))
        ends[first:last] = array("q", (end,))
        if len(starts) > MAX_RANGES:
            shortest = min(range(len(starts)), key=lambda at: ends[at] - starts[at])
            del starts[shortest], ends[shortest]


class SealedBatches:
    """The first `size_bytes` of a `.log` file, which end at `end_offset` and have index files: a `BatchLookup`.

    Every look-up raises KAFKA_STORAGE_ERROR if the file cannot be read or is damaged.
    """

    __slots__ = (
        "_base_offset",
        "_checked",
        "_file",
        "_is_exact",
        "_is_open",
        "_offsets",
        "_times",
        "_walked",
        "end_offset",
        "index_interval_bytes",
        "max_timestamp",
        "size_bytes",
    )

    def __init__(
        self,
        file: SegmentFile,
        base_offset: int,
        end_offset: int,
        size_bytes: int,
        max_timestamp: int,
        index_interval_bytes: int,
    ) -> None:
        """Begin with a file whose batches are all verified; for others see `opened`."""
        self._file = file
        self._base_offset = base_offset
        self.end_offset = end_offset
        self.size_bytes = size_bytes
        self.max_timestamp = max_timestamp
        self.index_interval_bytes = index_interval_bytes
        """Number of bytes between two entries of a rewritten index."""
        self._is_exact = True
        """Whether `end_offset` is exact, not only an upper bound."""
        self._is_open = True
        """Whether the ends of the files have been compared; an index with a gap may then be rewritten."""
        self._checked = CheckedRanges()
        self._checked.add(0, size_bytes)
        self._walked = (0, 0)
        """The range of positions that the last look-up verified."""
        self._offsets = MappedIndex(file.files, INDEX_SUFFIX, OFFSET_ENTRY)
        self._times = MappedIndex(file.files, TIME_INDEX_SUFFIX, TIME_ENTRY)

    @classmethod
    def opened(
        cls, file: SegmentFile, base_offset: int, upper_bound_offset: int, size_bytes: int, index_interval_bytes: int
    ) -> SealedBatches | None:
        """Return the batches of a file after comparing the ends of its files; None if they do not match.

        As in Kafka, the largest timestamp is that of the last entry. A newer one in the last batches shows that
        entries are missing.
        """
        sealed = cls(file, base_offset, upper_bound_offset, size_bytes, NO_TIMESTAMP, index_interval_bytes)
        sealed._is_exact = sealed._is_open = False
        sealed._checked = CheckedRanges()
        try:
            sealed._read_ends()
        except (IndexMismatchError, BatchDamagedError):
            return None
        sealed._is_open = True
        return sealed

    def _read_ends(self) -> None:
        offsets = self._offset_entries()
        times = self._times.entries(self._file.path)
        position = offsets[offsets.count - 1][1] if offsets.count else 0
        if not 0 <= position < self.size_bytes <= position + MAX_TAIL_BYTES:
            raise IndexMismatchError
        tail = list(self._walk(position))
        if offsets.count:
            self._compare(offsets, offsets.count - 1, tail[0])
        self.end_offset = tail[-1].last_offset + 1
        self._is_exact = True
        newest = NO_TIMESTAMP
        if times.count:
            newest = times[times.count - 1][0]
            # Raises unless there is such a batch.
            self._place_of_time(times, times.count - 1)
        # If timestamps do not grow, the whole file may follow that entry, so only the tail is compared.
        if any(place.max_timestamp > newest for place in tail):
            raise IndexMismatchError
        self.max_timestamp = newest
        self._checked.add(position, self.size_bytes)

    # -- look-ups -------------------------------------------------------------------------------

    def translate_offset(self, offset: int) -> BatchPlace:
        """Return the batch that holds `offset`, which is below the end offset, or follows it."""
        return self._trusted(lambda: self._translate(offset))

    def upper_bound_offset(self, position: int) -> int | None:
        """Return the last offset of the first batch with an entry at or after the position, or None."""
        return self._trusted(lambda: self._upper_bound(position))

    def places_from(self, offset: int) -> Iterator[BatchPlace]:
        """Yield the batches from the one that holds `offset` or follows it."""
        return self._sound_places(self.translate_offset(offset).position)

    def places_since(self, timestamp: int, offset: int) -> Iterator[BatchPlace]:
        """Yield the batches at or after `offset` whose largest timestamp is at least `timestamp`."""
        start = self._trusted(lambda: self._position_before(timestamp))
        if offset >= self.end_offset:
            return
        start = max(start, self.translate_offset(offset).position)
        for place in self._sound_places(start):
            if place.max_timestamp >= timestamp:
                yield place

    def check(self, position: int, end: int) -> None:
        """Verify the batches that begin at or after `position` and before `end`, unless that was done.

        Ranges that are read in order are verified once.
        """
        walked_from, walked_to = self._walked
        checked_to = walked_to if walked_from <= position < walked_to else position
        start = self._checked.end_of(checked_to)
        if end <= start:
            return
        reached = self.size_bytes
        for place in self._sound_places(start, is_settled=False):
            if place.position >= end:
                reached = place.position
                break
        self._checked.add(position, reached)

    def load(self) -> BatchEntries:
        """Scan all batches; return their entries."""
        file, entries = self._file, BatchEntries(self._base_offset, self.index_interval_bytes)
        with file.io(f"read {file.path.name}"):
            valid_bytes = scan_segment(
                file.path,
                file.files,
                entries,
                LogHistory(),
                verify=False,
                upper_bound_offset=self.end_offset,
                at_most_bytes=self.size_bytes,
            )
        if (valid_bytes, entries.end_offset) != (self.size_bytes, self.end_offset):
            raise file.damaged(BatchDamagedError(valid_bytes, entries.end_offset))
        return entries

    # -- inside ---------------------------------------------------------------------------------

    def _trusted(self, look_up: Callable[[], _Result]) -> _Result:
        """Look up; repeat once if an index had to be rewritten."""
        try:
            return look_up()
        except (IndexMismatchError, BatchDamagedError):
            self._restore_indexes()
        try:
            return look_up()
        except (IndexMismatchError, BatchDamagedError) as error:
            raise self._file.damaged(error) from error

    def _restore_indexes(self) -> None:
        """Rewrite the indexes from the batches."""
        entries = self.load()
        with self._file.io("rewrite an index"):
            restore_indexes(entries, self._file.files, self._file.path)

    def _offset_entries(self) -> IndexEntries:
        return self._offsets.entries(self._file.path)

    def _walk(self, position: int) -> Iterator[BatchPlace]:
        return walk_batches(
            self._file.read, position, self.size_bytes, self._base_offset, self.end_offset, is_exact=self._is_exact
        )

    def _sound_places(self, position: int, *, is_settled: bool = True) -> Iterator[BatchPlace]:
        """Yield batches from the verified start of one on; any error there is damage of the `.log`."""
        walk = self._walk(position)
        try:
            yield from settled(walk) if is_settled else walk
        except BatchDamagedError as damage:
            raise self._file.damaged(damage) from damage

    def _translate(self, offset: int) -> BatchPlace:
        if self._file.is_deleted:
            return next(place for place in self._walk(0) if place.last_offset >= offset)
        entries = self._offset_entries()
        interval = self._interval(entries, entries.floor(offset - self._base_offset))
        return next(place for place in interval if place.last_offset >= offset)

    def _interval(self, entries: IndexEntries, slot: int) -> list[BatchPlace]:
        """Return the batches from that of an entry (-1: the first batch) to that of the next entry."""
        start = entries[slot][1] if slot >= 0 else 0
        is_last = slot + 1 == entries.count
        end = self.size_bytes if is_last else entries[slot + 1][1]
        if not 0 <= start < end <= self.size_bytes:
            raise IndexMismatchError
        places = []
        for place in self._walk(start):
            places.append(place)
            if place.position >= end:
                break
        if slot >= 0:
            self._compare(entries, slot, places[0])
        if not is_last:
            self._compare(entries, slot + 1, places[-1])
        self._walked = (start, end)
        before_last = places[-1] if is_last else places[-2]
        skipped_bytes = before_last.position - start
        if self._is_open and is_gap(skipped_bytes, self.index_interval_bytes):
            raise IndexMismatchError  # look-ups in this gap would be slow
        return places

    def _compare(self, entries: IndexEntries, slot: int, place: BatchPlace) -> None:
        """Raise IndexMismatchError unless the offset index's entry is that of the batch, and in order."""
        offset, position = entries[slot]
        if (offset, position) != (place.last_offset - self._base_offset, place.position):
            raise IndexMismatchError
        if slot > 0 and not (entries[slot - 1][0] < offset and entries[slot - 1][1] < position):
            raise IndexMismatchError

    def _upper_bound(self, position: int) -> int | None:
        if self._file.is_deleted:
            return None
        entries = self._offset_entries()
        slot = entries.ceiling(position)
        for near in range(max(slot - 1, 0), min(slot + 1, entries.count)):
            start = entries[near][1]
            if not 0 <= start < self.size_bytes:
                raise IndexMismatchError
            self._compare(entries, near, next(self._walk(start)))
        return None if slot == entries.count else self._base_offset + entries[slot][0]

    def _position_before(self, timestamp: int) -> int:
        """Return a position before which all batches are older than `timestamp`.

        The entry before the one found is used, because a single batch does not show where a timestamp first occurred.
        """
        if self._file.is_deleted:
            return 0
        times = self._times.entries(self._file.path)
        newest = times[times.count - 1][0] if times.count else NO_TIMESTAMP
        if newest != self.max_timestamp:
            raise IndexMismatchError
        slot = times.floor(timestamp)
        nearest = range(max(slot - 1, 0), min(slot + 2, times.count))
        places = {near: self._place_of_time(times, near) for near in nearest}
        entries = [(times[near][0], place.position) for near, place in places.items()]
        for (earlier, before), (later, after) in pairwise(entries):
            if earlier >= later or before >= after:
                raise IndexMismatchError
        return places[slot - 1].position if slot > 0 else 0

    def _place_of_time(self, times: IndexEntries, slot: int) -> BatchPlace:
        """Return the batch of a time index entry. Raises IndexMismatchError if there is no such batch."""
        timestamp, relative_offset = times[slot]
        offset = self._base_offset + relative_offset
        if not self._base_offset <= offset < self.end_offset:
            raise IndexMismatchError
        place = self._translate(offset)
        if (place.max_timestamp, place.last_offset) != (timestamp, offset):
            raise IndexMismatchError
        return place
