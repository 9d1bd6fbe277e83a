"""The batches of a segment in its `.log` file.

    .log    ├──── sealed ────┼─── entries ───┤
             found by the     found by arrays
             index files      in memory

The active segment has entries of its batches. A closed segment drops them: all its batches are sealed. A segment that
is active again after a clean shutdown has both, and a truncated one reloads its entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.log.append_info import EMPTY_FETCH, FetchDataInfo
from broker_sim.log.memory import BATCH_OVERHEAD_BYTES
from broker_sim.log.storage.batch_entries import BatchEntries
from broker_sim.log.storage.sealed_batches import SealedBatches
from broker_sim.protocol.record_batch import parse_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.log.storage.batch_entries import BatchPlace
    from broker_sim.log.storage.interface import BatchLookup
    from broker_sim.log.storage.segment_file import SegmentFile
    from broker_sim.protocol.record_batch import BatchHeader


class FileBatches:
    """The `Batches` of a segment on disk; raises as `LogStorage`."""

    __slots__ = ("_entries", "_file", "_sealed")

    def __init__(self, file: SegmentFile, entries: BatchEntries, sealed: SealedBatches | None = None) -> None:
        """`sealed` looks up the first batches of the file, `entries` the later ones."""
        self._file = file
        self._entries = entries
        self._sealed = sealed

    @classmethod
    def of_sealed(cls, file: SegmentFile, sealed: SealedBatches) -> FileBatches:
        """Return the batches of a file that are all sealed."""
        return cls(file, _behind(sealed), sealed)

    @property
    def end_offset(self) -> int:
        """The offset after the last batch."""
        return self._entries.end_offset

    @property
    def size_bytes(self) -> int:
        """The bytes of all batches."""
        return self._entries.size_bytes

    @property
    def memory_bytes(self) -> int:
        """The bytes of all batches, and of their entries in memory."""
        return self._entries.size_bytes + len(self._entries) * BATCH_OVERHEAD_BYTES

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of any batch, -1 if there is none."""
        return self._entries.max_timestamp

    @property
    def entry_count(self) -> int:
        """The number of entries in memory."""
        return len(self._entries)

    @property
    def uses_index_files(self) -> bool:
        """Whether all batches are sealed, without any entry in memory."""
        return self._sealed is not None and not len(self._entries)

    # -- changes --------------------------------------------------------------------------------

    def append(self, batch: bytes, end_offset: int, max_timestamp: int) -> None:
        """Write a batch after the last one."""
        entries = self._entries
        self._file.append(batch, entries.size_bytes)
        entries.add(end_offset, len(batch), max_timestamp)

    def truncate_to(self, offset: int) -> None:
        """Truncate the file before the batch that holds `offset`."""
        entries = self.entries()
        keep = entries.number_of(offset)
        self._file.truncate(entries.positions[keep])
        entries.truncate_to(keep)

    def release_before(self, offset: int) -> None:
        """Do nothing: the records are not in memory."""

    def become_inactive(self) -> None:
        """Drop the entries; the index files take their place."""
        if self.uses_index_files or not self._entries.size_bytes:
            return
        entries = self.entries()
        sealed = self._sealed = SealedBatches(
            self._file,
            entries.start_offset,
            entries.end_offset,
            entries.size_bytes,
            entries.max_timestamp,
            entries.index.interval_bytes,
        )
        self._entries = _behind(sealed)

    def entries(self) -> BatchEntries:
        """Return the entries of all batches; those of sealed batches are reloaded."""
        if self._sealed is not None:
            entries = self._sealed.load()
            entries.extend(self._entries)
            self._entries, self._sealed = entries, None
        return self._entries

    # -- look-ups -------------------------------------------------------------------------------

    def _lookup(self, offset: int) -> BatchLookup:
        """Return the look-up for the batch that holds `offset` or follows it."""
        sealed = self._sealed
        return self._entries if sealed is None or offset >= sealed.end_offset else sealed

    def read(
        self, start_offset: int, max_bytes: int, upper_bound_offset: int, min_one_message: bool, as_view: bool
    ) -> FetchDataInfo | None:
        """Return a slice of the segment; see `Batches.read`."""
        lookup = self._lookup(start_offset)
        place = lookup.translate_offset(start_offset)
        if place is None:
            return None
        start, first_size = place.position, place.end - place.position
        available = self.position(upper_bound_offset) - start
        size = min(available, max(first_size, max_bytes) if min_one_message else max_bytes)
        if size <= 0:
            return EMPTY_FETCH
        lookup.check(start, start + size)
        view = self._file.view(start, size) if as_view else None
        read = [] if view is not None else [self._file.read(start, size)]
        return FetchDataInfo(read, size, size < first_size, view)

    def position(self, offset: int) -> int:
        """Return the bytes before the batch that holds `offset` or follows it."""
        place = self._lookup(offset).translate_offset(offset)
        return self.size_bytes if place is None else place.position

    def upper_bound_offset(self, position: int) -> int | None:
        """Return the last offset of the first batch with an index entry at or after the position, or None."""
        if self._sealed is None or len(self._entries):
            # The position of the next entry depends on the last sealed one.
            return self.entries().upper_bound_offset(position)
        return self._sealed.upper_bound_offset(position)

    def batches_from(self, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield all batches from the one that holds `offset` or follows it."""
        sealed = self._sealed
        if sealed is not None and offset < sealed.end_offset:
            for place in sealed.places_from(offset):
                yield self._batch_at(place)
            offset = sealed.end_offset
        for place in self._entries.places_from(offset):
            yield self._batch_at(place)

    def batches_since(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield the batches at or after `offset` whose largest timestamp is at least `timestamp`."""
        lookups: tuple[BatchLookup | None, BatchLookup] = (self._sealed, self._entries)
        for lookup in lookups:
            if lookup is None:
                continue
            for place in lookup.places_since(timestamp, offset):
                batch = self._batch_at(place)
                if batch[0].max_timestamp >= timestamp:
                    yield batch

    def _batch_at(self, place: BatchPlace) -> tuple[BatchHeader, bytes]:
        batch = self._file.read(place.position, place.end - place.position)
        return parse_header(batch), batch


def _behind(sealed: SealedBatches) -> BatchEntries:
    """Return empty entries for batches that will be appended after the sealed ones."""
    return BatchEntries(sealed.end_offset, sealed.index_interval_bytes, sealed.size_bytes, sealed.max_timestamp)
