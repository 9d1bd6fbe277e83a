"""The transactions that a cleaning meets; mirrors `CleanedTransactionMetadata`.

A batch of an aborted transaction goes at once. A marker may go when no batch of its transaction was met
before it, so at the earliest in the cleaning after the one that has removed the last of them.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from broker_sim.protocol.records import read_end_txn_marker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.log.transaction_index import AbortedTxn
    from broker_sim.protocol.record_batch import BatchHeader


class _OngoingAbortedTxn:
    """An aborted transaction from its first offset to its marker."""

    __slots__ = ("aborted", "has_batches")

    def __init__(self, aborted: AbortedTxn) -> None:
        self.aborted = aborted
        self.has_batches = False


class CleanedTransactionMetadata:
    """Is given every batch in the order of the log."""

    __slots__ = ("_aborted", "_ongoing_aborted", "_ongoing_committed", "_remaining")

    def __init__(self) -> None:
        self._aborted: list[tuple[int, AbortedTxn]] = []
        self._ongoing_aborted: dict[int, _OngoingAbortedTxn] = {}
        self._ongoing_committed: set[int] = set()
        self._remaining: list[AbortedTxn] = []

    def add_aborted(self, aborted: Iterable[AbortedTxn]) -> None:
        """Take in the aborted transactions of the batches that come next."""
        for txn in aborted:
            heappush(self._aborted, (txn.first_offset, txn))

    def take_remaining(self) -> list[AbortedTxn]:
        """Return the aborted transactions that had batches and have ended since the last call."""
        remaining, self._remaining = self._remaining, []
        return remaining

    def on_batch_read(self, header: BatchHeader) -> bool:
        """Return whether the batch, which is no marker, is of an aborted transaction."""
        self._begin_aborted(header.last_offset)
        if not header.is_transactional:
            return False
        ongoing = self._ongoing_aborted.get(header.producer_id)
        if ongoing is None:
            self._ongoing_committed.add(header.producer_id)
            return False
        ongoing.has_batches = True
        return True

    def on_control_batch_read(self, header: BatchHeader, batch: bytes) -> bool:
        """Return whether no batch of the marker's transaction was met; so also for an empty marker."""
        self._begin_aborted(header.last_offset)
        if not header.records_count:
            return True
        if read_end_txn_marker(batch).is_commit:
            was_met = header.producer_id in self._ongoing_committed
            self._ongoing_committed.discard(header.producer_id)
            return not was_met
        ongoing = self._ongoing_aborted.pop(header.producer_id, None)
        if ongoing is None or not ongoing.has_batches:
            return True
        self._remaining.append(ongoing.aborted)
        return False

    def _begin_aborted(self, offset: int) -> None:
        """Begin the aborted transactions whose first offset is at or before `offset`."""
        while self._aborted and self._aborted[0][0] <= offset:
            _, txn = heappop(self._aborted)
            self._ongoing_aborted.setdefault(txn.producer_id, _OngoingAbortedTxn(txn))
