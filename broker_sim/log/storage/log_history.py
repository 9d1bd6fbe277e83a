"""What the batches of a log say of its leader epochs and aborted transactions.

Both have files of their own, which have no checksums. So they are made from the batches whenever a log is
opened: the transactions are taken as they are here, the file of the leader epochs must agree.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from broker_sim.log.leader_epoch_cache import EpochEntry
from broker_sim.log.transaction_index import AbortedTxn

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LogHistory"]


class LogHistory:
    """Filled batch by batch, from the log's first to its last."""

    __slots__ = ("_ongoing", "aborted", "epochs")

    def __init__(self) -> None:
        self.epochs: list[EpochEntry] = []
        """The first batch of each leader epoch, the oldest first."""
        self.aborted: list[AbortedTxn] = []
        """The aborted transactions with records, in the order of their markers."""
        self._ongoing: dict[int, int] = {}

    def add_epoch(self, epoch: int, base_offset: int) -> None:
        """Note a batch whose epoch is not that of the batch before."""
        if epoch >= 0:
            self.epochs.append(EpochEntry(epoch, base_offset))

    def add_data(self, producer_id: int, base_offset: int) -> None:
        """Note a batch of a transaction."""
        self._ongoing.setdefault(producer_id, base_offset)

    def add_marker(self, producer_id: int, offset: int, *, is_commit: bool) -> None:
        """Note the end of a transaction."""
        first_offset = self._ongoing.pop(producer_id, None)
        if first_offset is not None and not is_commit:
            next_undecided = min(self._ongoing.values(), default=offset + 1)
            self.aborted.append(AbortedTxn(producer_id, first_offset, offset, next_undecided))

    def contradiction(self, entries: Sequence[EpochEntry]) -> str | None:
        """Return what of these epochs cannot be; None if they agree with the batches.

        There may be epochs without batches: a leader begins its epoch before it has any.
        """
        for before, entry in itertools.pairwise(entries):
            if entry.epoch <= before.epoch or entry.start_offset <= before.start_offset:
                return f"epoch {entry.epoch} from {entry.start_offset} on follows {before}"
        position, epoch = 0, -1
        for found in self.epochs:
            while position < len(entries) and entries[position].start_offset <= found.start_offset:
                if epoch >= 0 and found.start_offset > entries[position].start_offset:
                    return f"epoch {entries[position].epoch} begins within epoch {epoch}"
                position += 1
            if not position or entries[position - 1].epoch != found.epoch:
                return f"the batch at {found.start_offset} is of epoch {found.epoch}"
            epoch = found.epoch
        return None
