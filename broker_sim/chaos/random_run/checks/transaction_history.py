"""Facts about the transactions of a random run, which nothing may contradict later.

| a transaction is | after | of its records a read_committed reader sees |
|---|---|---|
| open | its first request | none |
| ending | a commit request without a response yet | all or none |
| committed | its commit was acknowledged | all |
| aborted | its abort was acknowledged, or its producer ended without a commit request | none |
| in doubt | its producer ended after a commit request without a response | all or none |
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import violated


def group_of(transactional_id: str) -> str:
    """Return the group whose offsets the producers of a transactional id commit."""
    return f"group-of-{transactional_id}"


class Outcome(Enum):
    """The end of a transaction, as far as its producer knows it."""

    OPEN = "open"
    ENDING = "ending"
    COMMITTED = "committed"
    ABORTED = "aborted"
    IN_DOUBT = "in doubt"


class OffsetStep(NamedTuple):
    """The change of a group's committed offset in a transaction, from `begin` to `end`."""

    partition: int
    begin: int
    end: int


@dataclass(slots=True)
class Transaction:
    """One transaction of one producer, with its number at the producer."""

    transactional_id: str
    producer: str
    number: int
    outcome: Outcome = Outcome.OPEN
    written: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    """The acknowledged values by partition, in order."""
    step: OffsetStep | None = None
    seen: set[bytes] = field(default_factory=set)
    """The values that read_committed readers have seen."""

    @property
    def may_be_committed(self) -> bool:
        """Whether a commit was requested."""
        return self.outcome in {Outcome.ENDING, Outcome.COMMITTED, Outcome.IN_DOUBT}

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.producer}, {self.outcome.value}"


class TransactionHistory:
    """The transactions of a run, in the order of the responses to clients."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.fenced = 0
        """Number of times that a producer got the error that it was fenced."""
        self.committed_values: set[bytes] = set()
        """Values that a read_committed reader has read, in transactions and outside."""
        self.committed_reads: list[tuple[tuple[str, int, int], bytes]] = []
        """Places and values of these records, in the order of the reads."""
        self._zombies = 0
        self._by_value: dict[bytes, Transaction] = {}
        self._producers: dict[str, tuple[int, int]] = {}
        """The producer id and the highest epoch of each transactional id."""

    def count(self, outcome: Outcome) -> int:
        """Return the number of transactions with that outcome."""
        return sum(each.outcome is outcome for each in self.transactions)

    def begin(self, transactional_id: str, producer: str) -> Transaction:
        """Return a new transaction of the producer."""
        number = sum(each.producer == producer for each in self.transactions)
        transaction = Transaction(transactional_id, producer, number)
        self.transactions.append(transaction)
        return transaction

    def add_zombie(self, transactional_id: str, producer: str) -> Transaction:
        """Return the transaction of a fenced producer: aborted from the start, and not counted."""
        self._zombies += 1
        return Transaction(transactional_id, producer, self._zombies, Outcome.ABORTED)

    def add_value(self, transaction: Transaction, value: bytes) -> None:
        """Note a value that is about to be written."""
        self._by_value[value] = transaction

    # -- producers --------------------------------------------------------------------------------

    def add_producer(self, transactional_id: str, producer_id: int, epoch: int) -> None:
        """Add a response to InitProducerId; raise if the transactional id had another producer id."""
        before_id, before_epoch = self._producers.get(transactional_id, (producer_id, -1))
        if before_id != producer_id:
            violated(
                "transactional-ids-keep-their-producer-id",
                f"{transactional_id} had the producer id {before_id} and got {producer_id}",
            )
        self._producers[transactional_id] = (producer_id, max(epoch, before_epoch))

    def is_replaced(self, transactional_id: str, epoch: int) -> bool:
        """Whether a newer producer has started since the one with that epoch."""
        return self._producers[transactional_id][1] > epoch

    def check_offset(self, transactional_id: str, partition: int, offset: int) -> None:
        """Check the offset that the only live producer of the id fetches for its group.

        Raise if it belongs to no transaction or to one without a commit, or is before a committed one.
        """
        steps = [
            (each.step.end, each)
            for each in self.transactions
            if each.transactional_id == transactional_id and each.step is not None and each.step.partition == partition
        ]
        newest = max((end for end, each in steps if each.outcome is Outcome.COMMITTED), default=0)
        if offset < newest:
            violated(
                "committed-offsets-stay",
                f"{transactional_id} has committed offset {newest} of partition {partition} in a "
                f"transaction, and finds {offset}",
            )
        if offset and not any(end == offset and each.may_be_committed for end, each in steps):
            violated(
                "no-offset-without-its-records",
                f"{transactional_id} finds offset {offset} of partition {partition}, which no "
                f"transaction has committed: {[str(each) for _, each in steps[-3:]]}",
            )

    # -- readers ----------------------------------------------------------------------------------

    def add_committed_read(self, partition: int, offset: int, value: bytes | None) -> None:
        """Add a record that was read as committed; raise if it cannot be committed."""
        if value is None:
            return
        self.committed_values.add(value)
        self.committed_reads.append(((TOPIC, partition, offset), value))
        transaction = self._by_value.get(value)
        if transaction is None:
            return
        if value in transaction.seen:
            violated("no-duplicates", f"{value!r} was read again at offset {offset} of partition {partition}")
        transaction.seen.add(value)
        read = f"{value!r} was read as committed at offset {offset} of partition {partition}, and is of {transaction}"
        if transaction.outcome is Outcome.OPEN:
            violated("open-transactions-are-not-read", read)
        if transaction.outcome is Outcome.ABORTED:
            violated("aborted-transactions-are-not-read", read)
