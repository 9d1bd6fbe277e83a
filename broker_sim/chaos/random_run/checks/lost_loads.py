"""Whether a coordinator of the transactions has loaded records that a later one does not have.

A new coordinator loads its log to the end, also beyond the high watermark, and acts on it at once: it sends
the markers of a decision, and answers AddPartitionsToTxn for a partition that is in the transaction already.
Mirrors `TransactionStateManager.loadTransactionMetadata`. If an in-sync replica without these records leads next,
it goes on from what was before them. It may decide a transaction again, with markers that are refused where
those of the other coordinator are, and does not know of a partition that was written to: such a transaction is
read in part, or never ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.action import TRANSACTIONS
from broker_sim.chaos.faults.roles import COORDINATED
from broker_sim.chaos.random_run.checks.batches import batches_of

if TYPE_CHECKING:
    from broker_sim.broker.broker import Broker

EXCUSED: Final = {
    "aborted-transactions-are-not-read",
    "committed-offsets-stay",
    "committed-records-are-read",
    "committed-transactions-are-read",
    "no-offset-without-its-records",
    "open-transactions-are-not-read",
    "transactions-end",
}
"""What need not hold then."""


class LostLoads:
    """Looks at the coordinators of one run."""

    def __init__(self) -> None:
        self.are_there = False
        self._led: set[tuple[Broker, int]] = set()
        self._loaded: list[bytes] = []

    def excuse(self, invariant: str) -> bool:
        """Whether it may have been violated because a coordinator lacked what an earlier one had loaded."""
        return self.are_there and invariant in EXCUSED

    def look_at(self, broker: Broker) -> None:
        """Look at what a broker loads that was started or has heard of new metadata, if it was elected."""
        partition = broker.replica_manager.partitions.get(COORDINATED[TRANSACTIONS])
        if partition is None or not partition.is_leader:
            return
        if (broker, partition.leader_epoch) not in self._led:
            self._led.add((broker, partition.leader_epoch))
            loaded = [bytes(batch) for batch in batches_of(partition.log)]
            if loaded[: len(self._loaded)] != self._loaded:
                self.are_there = True
            self._loaded = loaded
