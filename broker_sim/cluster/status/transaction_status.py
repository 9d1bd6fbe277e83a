"""Frozen snapshots of transactions in their coordinators, and of producers in the leaders' logs.

They are read directly from the brokers' state, without a request. Partitions without a live leader are left out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from broker_sim.cluster.nodes.nodes import leaders_log, leads
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.log.producer_state_entry import ProducerStateEntry
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.transaction.metadata import TransactionMetadata


@dataclass(frozen=True, slots=True)
class TransactionStatus:
    """One transactional id in its coordinator's state."""

    transactional_id: str
    state: str
    """The state, by the names of Kafka's tools: `Empty`, `Ongoing`, `CompleteCommit`, ..."""
    pending_state: str | None
    """The state that is being written; it stays pending if the in-sync replicas do not accept it."""
    coordinator: int
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    age_ms: int | None
    """The age of the open transaction in ms, None without one."""
    partitions: tuple[TopicPartition, ...]
    """The partitions of the open transaction that have no marker yet."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "partitions": [each._asdict() for each in self.partitions]}


class TransactionsStatus(tuple[TransactionStatus, ...]):
    """All transactional ids, by id."""

    __slots__ = ()

    def of(self, transactional_id: str) -> TransactionStatus:
        """Return one transactional id. Raises LookupError with the existing ids."""
        for transaction in self:
            if transaction.transactional_id == transactional_id:
                return transaction
        ids = ", ".join(each.transactional_id for each in self) or "none"
        raise LookupError(f"unknown transactional id {transactional_id!r}; transactional ids: {ids}")

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"transactions": [transaction.to_json() for transaction in self]}


@dataclass(frozen=True, slots=True)
class ProducerStatus:
    """The state of one idempotent producer in the log of one partition's leader."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    transaction_start_offset: int | None
    """The first offset of the producer's open transaction, None without one."""
    transactional_id: str | None
    """The transactional id, None without one and without a live coordinator."""
    is_hanging: bool
    """Whether the transaction is open in the log but not in its coordinator, so that nothing ends it."""


class ProducersStatus(tuple[ProducerStatus, ...]):
    """All idempotent producers, partition by partition."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"producers": [asdict(producer) for producer in self]}


def transactions_status(nodes: Nodes) -> TransactionsStatus:
    """Return all transactional ids of all coordinators."""
    transactions = [_transaction(broker, metadata) for broker, metadata in _each_transaction(nodes)]
    return TransactionsStatus(sorted(transactions, key=lambda each: each.transactional_id))


def _each_transaction(nodes: Nodes) -> Iterator[tuple[Broker, TransactionMetadata]]:
    for broker in nodes.brokers.values():
        for partition in broker.transactions.states.loaded_partitions():
            if leads(nodes, broker, TRANSACTION_STATE_TOPIC, partition.partition):
                for metadata in partition.transactions.values():
                    yield broker, metadata


def _transaction(broker: Broker, metadata: TransactionMetadata) -> TransactionStatus:
    values, pending = metadata.values, metadata.pending_state
    age_ms = None
    if metadata.is_open:
        age_ms = max(0, broker.clock.wall_clock_ms() - values.start_ms)
    return TransactionStatus(
        metadata.transactional_id,
        metadata.state.state_name,
        None if pending is None else pending.state_name,
        broker.broker_id,
        metadata.producer_id,
        metadata.producer_epoch,
        values.timeout_ms,
        age_ms,
        tuple(sorted(metadata.partitions)),
    )


def producers_status(nodes: Nodes) -> ProducersStatus:
    """Return the idempotent producers in the leaders' logs."""
    transactions = {metadata.producer_id: metadata for _, metadata in _each_transaction(nodes)}
    return ProducersStatus(
        _producer(key, entry, transactions.get(entry.producer_id))
        for key, _ in nodes.controller.image.each_partition()
        if (log := leaders_log(nodes, key)) is not None
        for entry in log.producer_state.active_producers.values()
    )


def _producer(key: TopicPartition, entry: ProducerStateEntry, metadata: TransactionMetadata | None) -> ProducerStatus:
    start_offset = entry.current_txn_first_offset
    return ProducerStatus(
        key.topic,
        key.partition,
        entry.producer_id,
        entry.producer_epoch,
        entry.last_sequence,
        start_offset,
        None if metadata is None else metadata.transactional_id,
        start_offset is not None and metadata is not None and key not in metadata.partitions,
    )
