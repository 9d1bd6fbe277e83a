"""The aborted transactions of a log; mirrors `TransactionIndex` over all its segments.

Entries are added in the order of their abort markers, so their last offsets increase.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_LAST_OFFSET = attrgetter("last_offset")


class AbortedTxn(NamedTuple):
    """A transaction from its first record to its abort marker.

    `last_stable_offset` is the log's last stable offset once the marker is replicated: no later
    entry can have records below it.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions of one log."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[AbortedTxn] = ()) -> None:
        self._entries: list[AbortedTxn] = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, aborted: AbortedTxn) -> None:
        """Add the transaction whose abort marker was just written."""
        self._entries.append(aborted)

    def collect(self, fetch_offset: int, upper_bound_offset: int) -> list[AbortedTxn]:
        """Return the aborted transactions with records in [fetch offset, upper bound)."""
        aborted = []
        first = bisect_left(self._entries, fetch_offset, key=_LAST_OFFSET)
        for entry in self._entries[first:]:
            if entry.first_offset < upper_bound_offset:
                aborted.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                break
        return aborted

    def between(self, start_offset: int, end_offset: int) -> list[AbortedTxn]:
        """Return the entries whose marker is in [start offset, end offset)."""
        first = bisect_left(self._entries, start_offset, key=_LAST_OFFSET)
        return self._entries[first : bisect_left(self._entries, end_offset, key=_LAST_OFFSET)]

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose marker is at or after `offset`."""
        del self._entries[bisect_left(self._entries, offset, key=_LAST_OFFSET) :]

    def truncate_from_start(self, offset: int) -> None:
        """Drop the entries whose marker is before `offset`."""
        del self._entries[: bisect_left(self._entries, offset, key=_LAST_OFFSET)]

    def replace(self, start_offset: int, end_offset: int, entries: Iterable[AbortedTxn]) -> None:
        """Replace the entries whose marker is in [start offset, end offset) by `entries`."""
        first = bisect_left(self._entries, start_offset, key=_LAST_OFFSET)
        last = bisect_left(self._entries, end_offset, first, key=_LAST_OFFSET)
        self._entries[first:last] = entries

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
