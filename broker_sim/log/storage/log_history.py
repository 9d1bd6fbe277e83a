"""The leader epochs and aborted transactions of a log, taken from its batches.

Both have files of their own, which have no checksums. The transactions are always taken from the batches.
The leader epochs are taken from their file, as in Kafka: it knows where an epoch began whose first batches are
compacted or deleted. Batches that are recovered add newer epochs; all others count only if the file is lost.
"""

from __future__ import annotations

from broker_sim.log.leader_epoch_cache import EpochEntry
from broker_sim.log.transaction_index import AbortedTxn


class LogHistory:
    """Filled batch by batch, from the log's first to its last."""

    __slots__ = ("_ongoing", "aborted", "epochs", "recovered_epochs")

    def __init__(self) -> None:
        self.epochs: list[EpochEntry] = []
        """The first batch of each leader epoch that is above all before, the oldest first."""
        self.recovered_epochs: list[EpochEntry] = []
        """The same of the segments that are recovered, for themselves."""
        self.aborted: list[AbortedTxn] = []
        """The aborted transactions with records, in the order of their markers."""
        self._ongoing: dict[int, int] = {}

    def add_epoch(self, epoch: int, base_offset: int, *, is_recovered: bool) -> None:
        """Note a batch whose epoch is not that of the batch before in its segment."""
        _add_if_newer(self.epochs, epoch, base_offset)
        if is_recovered:
            _add_if_newer(self.recovered_epochs, epoch, base_offset)

    def add_data(self, producer_id: int, base_offset: int) -> None:
        """Note a batch of a transaction."""
        self._ongoing.setdefault(producer_id, base_offset)

    def add_marker(self, producer_id: int, offset: int, *, is_commit: bool) -> None:
        """Note the end of a transaction."""
        first_offset = self._ongoing.pop(producer_id, None)
        if first_offset is not None and not is_commit:
            next_undecided = min(self._ongoing.values(), default=offset + 1)
            self.aborted.append(AbortedTxn(producer_id, first_offset, offset, next_undecided))


def _add_if_newer(entries: list[EpochEntry], epoch: int, base_offset: int) -> None:
    if epoch > (entries[-1].epoch if entries else -1):
        entries.append(EpochEntry(epoch, base_offset))
