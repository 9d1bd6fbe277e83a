"""The start offsets of the leader epochs in a log; mirrors `LeaderEpochFileCache` (KIP-101, KIP-279).

    epoch   start offset          An epoch ends where the next one starts, the newest at the
      0          0                log end. `end_offset_for(1, leo)` with epochs 0 and 2 known
      2        100                returns (0, 100): the largest epoch up to 1 ends at 100.

Every change is passed to `on_change`, which stores the entries with the log. In memory the cache itself survives
a kill of the broker, as the log does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


class LeaderEpochCache:
    """The epochs of one log, rising in both epoch and start offset."""

    __slots__ = ("_epochs", "_is_kept", "_on_change", "_start_offsets", "latest_epoch")

    def __init__(
        self, entries: Iterable[EpochEntry] = (), on_change: Callable[[Sequence[EpochEntry]], object] | None = None
    ) -> None:
        """Begin with these entries, the oldest first; `on_change(entries)` is called after each change."""
        self._on_change = on_change
        self._is_kept = True
        """Whether `on_change` has been called with all current entries."""
        self._epochs: list[int] = []
        self._start_offsets: list[int] = []
        for entry in entries:
            self._epochs.append(entry.epoch)
            self._start_offsets.append(entry.start_offset)
        self.latest_epoch: int | None = self._epochs[-1] if self._epochs else None
        """The newest epoch, or None; for reading only."""

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, the oldest first."""
        return tuple(map(EpochEntry, self._epochs, self._start_offsets))

    def _keep(self) -> None:
        self._is_kept = True
        if self._on_change is not None:
            self._on_change(self.entries)

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """The oldest entry, or None."""
        return EpochEntry(self._epochs[0], self._start_offsets[0]) if self._epochs else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add the entry that `epoch` starts at `start_offset`; entries that contradict it are dropped.

        The start of the newest epoch can only move backwards. Raises ValueError below zero.
        """
        self.begin(epoch, start_offset)
        if not self._is_kept:
            self._keep()

    def begin(self, epoch: int, start_offset: int) -> None:
        """Add an epoch that has no record in the log yet; see `assign`.

        `on_change` is called with the first record or the next change: until then a reader of the
        checkpoint would drop the epoch, because it starts at the log's end. Raises ValueError as `assign`.
        """
        epochs, starts = self._epochs, self._start_offsets
        if epoch == self.latest_epoch and start_offset >= starts[-1]:
            return
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"Received invalid partition leader epoch entry ({epoch}, {start_offset})")
        keep = min(bisect_left(epochs, epoch), bisect_left(starts, start_offset))
        del epochs[keep:], starts[keep:]
        epochs.append(epoch)
        starts.append(start_offset)
        self.latest_epoch = epoch
        self._is_kept = False

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest known epoch up to the requested one and the offset where it ends.

        Returns (-1, -1) if the requested epoch is undefined or newer than all entries; the requested
        epoch itself and the first start offset if it is older than all entries.
        """
        if requested_epoch == UNDEFINED_EPOCH or not self._epochs:
            return (UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)
        if requested_epoch == self._epochs[-1]:
            return (requested_epoch, log_end_offset)
        higher = bisect_right(self._epochs, requested_epoch)
        if higher == len(self._epochs):
            return (UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)
        floor_epoch = self._epochs[higher - 1] if higher else requested_epoch
        return (floor_epoch, self._start_offsets[higher])

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch in which the record at `offset` was written, or None if unknown."""
        index = bisect_right(self._start_offsets, offset) - 1
        return self._epochs[index] if index >= 0 else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that start at or after `end_offset`; do nothing below zero.

        `on_change` is called later, as with `begin`: a reader of the checkpoint drops them again.
        """
        if end_offset >= 0:
            keep = bisect_left(self._start_offsets, end_offset)
            if keep < len(self._epochs):
                del self._epochs[keep:], self._start_offsets[keep:]
                self.latest_epoch = self._epochs[-1] if self._epochs else None
                self._is_kept = False

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs that end at or before `start_offset`; the epoch that holds it starts there."""
        covering = bisect_right(self._start_offsets, start_offset) - 1
        if covering > 0 or (covering == 0 and self._start_offsets[0] < start_offset):
            del self._epochs[:covering], self._start_offsets[:covering]
            self._start_offsets[0] = start_offset
            self._keep()

    def clear(self) -> None:
        """Drop all entries."""
        self._epochs.clear()
        self._start_offsets.clear()
        self.latest_epoch = None
        self._keep()
