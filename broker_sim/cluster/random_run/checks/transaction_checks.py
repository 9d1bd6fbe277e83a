"""What must hold for transactions at the end of a random run, when each of them is decided."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from broker_sim.cluster.faults.action import GROUPS, TRANSACTIONS
from broker_sim.cluster.faults.roles import COORDINATED
from broker_sim.cluster.random_run.checks.batches import batches_of
from broker_sim.cluster.random_run.checks.transaction_history import Outcome, group_of
from broker_sim.cluster.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import iter_records, read_end_txn_marker
from broker_sim.protocol.special_values import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.random_run.checks.history import History
    from broker_sim.cluster.random_run.checks.transaction_history import (
        OffsetStep,
        Transaction,
        TransactionHistory,
    )
    from broker_sim.cluster.random_run.schedule import Schedule
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
    from broker_sim.protocol.records import EndTxnMarker

__all__ = ["check_transactions", "is_fenced_by_a_resumed_coordinator", "transactions_are_decided"]


def transactions_are_decided(cluster: VirtualCluster, schedule: Schedule) -> bool:
    """Return whether no transaction is open: not for its coordinator, not in any partition."""
    coordinator = _leader_of(cluster, COORDINATED[TRANSACTIONS])
    if coordinator is not None and not all(
        each.state.is_complete and each.pending_state is None
        for each in coordinator.transactions.states.each()
    ):
        return False
    for number in range(schedule.partitions):
        key = TopicPartition(TOPIC, number)
        leader = _leader_of(cluster, key)
        assert leader is not None
        log = leader.replica_manager.partitions[key].log
        if log.last_stable_offset < log.log_end_offset:
            return False
    return True


def is_fenced_by_a_resumed_coordinator(
    cluster: VirtualCluster, schedule: Schedule, resumed_epochs: AbstractSet[int]
) -> bool:
    """Return whether a transaction never ends because the markers of its decision are refused, as in Kafka.

    A coordinator that is killed and started within its old session has timed it out in the next producer epoch,
    which only its own log says, and was started once more: it reads that log to the end and sends markers. If
    another replica leads next, it decides in the epoch before, which is fenced where such a marker is.
    """
    coordinator = _leader_of(cluster, COORDINATED[TRANSACTIONS])
    if coordinator is None:
        return False
    undecided = {
        each.producer_id: each.producer_epoch
        for each in coordinator.transactions.states.each()
        if each.pending_state is not None
    }
    of_topic = [TopicPartition(TOPIC, number) for number in range(schedule.partitions)]
    for key in (COORDINATED[GROUPS], *of_topic):
        leader = _leader_of(cluster, key)
        for batch in (
            () if leader is None else batches_of(leader.replica_manager.partitions[key].log)
        ):
            header = parse_header(batch)
            if (
                header.is_control
                and header.producer_epoch > undecided.get(header.producer_id, header.producer_epoch)
                and read_end_txn_marker(batch).coordinator_epoch in resumed_epochs
            ):
                return True
    return False


def check_transactions(
    cluster: VirtualCluster,
    schedule: Schedule,
    acknowledged: History,
    history: TransactionHistory,
    resumed_coordinator_epochs: AbstractSet[int] = frozenset(),
) -> None:
    """Compare what was read with what producers know; raises InvariantViolationError.

    A coordinator that is killed and started within its old session goes on in its leader epoch, and sends
    the markers of a decision that only its own log has, as in Kafka: who loads the state reads it to the
    log's end. If another replica without that record leads next, the transaction is decided again. So one
    of which nobody was told that it was committed may be read in part, if its markers say just that.
    """
    twice = [
        each
        for each in history.transactions
        if each.outcome is Outcome.IN_DOUBT
        and is_decided_twice(cluster, each, resumed_coordinator_epochs)
    ]
    for transaction in history.transactions:
        if transaction not in twice:
            _check_all_or_nothing(transaction)
    for one in acknowledged.acknowledged:
        is_own = not one.value.startswith(b"transactional")
        if is_own and one.acks == ACKS_ALL and one.value not in history.committed_values:
            violated(
                "acknowledged-records-are-read",
                f"{one.value!r} is of no transaction, was acknowledged at offset {one.offset} of "
                f"partition {one.partition}, and no read_committed reader has seen it",
            )
    _check_offsets(cluster, schedule, history, twice)


def is_decided_twice(
    cluster: VirtualCluster, transaction: Transaction, resumed_epochs: AbstractSet[int]
) -> bool:
    """Return whether the markers show a commit of a resumed coordinator and an abort of a later one."""
    commits: set[int] = set()
    aborts: set[int] = set()
    for number, values in transaction.written.items():
        for value in values:
            marker = _marker_after(cluster, TopicPartition(TOPIC, number), value)
            if marker is None or marker.is_commit != (value in transaction.seen):
                return False
            (commits if marker.is_commit else aborts).add(marker.coordinator_epoch)
    return bool(commits and aborts) and commits <= resumed_epochs and max(commits) < min(aborts)


def _marker_after(
    cluster: VirtualCluster, key: TopicPartition, value: bytes
) -> EndTxnMarker | None:
    """Return the marker that ends the transaction with that record."""
    leader = _leader_of(cluster, key)
    if leader is None:
        return None
    producer_id = None
    for batch in batches_of(leader.replica_manager.partitions[key].log):
        header = parse_header(batch)
        if producer_id is not None and header.is_control and header.producer_id == producer_id:
            return read_end_txn_marker(batch)
        if not header.is_control and any(record.value == value for record in iter_records(batch)):
            producer_id = header.producer_id
    return None


def _check_all_or_nothing(transaction: Transaction) -> None:
    """Check that nothing of an aborted transaction was read, and all of a committed one.

    One that is in doubt was committed if any of it was read.
    """
    written = [value for values in transaction.written.values() for value in values]
    missing = [value for value in written if value not in transaction.seen]
    is_committed = transaction.outcome is Outcome.COMMITTED
    may_be_committed = is_committed or transaction.outcome in {Outcome.ENDING, Outcome.IN_DOUBT}
    if transaction.seen and not may_be_committed:
        violated(
            "aborted-transactions-are-not-read",
            f"{transaction} wrote {written}, and of that {sorted(transaction.seen)} was read",
        )
    elif missing and (is_committed or transaction.seen):
        violated(
            "committed-transactions-are-read",
            f"{transaction} wrote {written}, of that {sorted(transaction.seen)} was read and {missing} "
            "never",
        )


def _check_offsets(
    cluster: VirtualCluster,
    schedule: Schedule,
    history: TransactionHistory,
    twice: list[Transaction],
) -> None:
    """Check that the committed steps of each group follow on one another, up to its offset.

    Those of transactions that were decided twice are committed or not.
    """
    leader = _leader_of(cluster, COORDINATED[GROUPS])
    if leader is None:
        return
    steps: dict[tuple[str, int], list[OffsetStep]] = defaultdict(list)
    for each in history.transactions:
        if each.step is not None and each.seen:
            steps[each.transactional_id, each.step.partition].append(each.step)
    for transactional_id in sorted({each.transactional_id for each in history.transactions}):
        group = group_of(transactional_id)
        for number in range(schedule.partitions):
            found = sorted(steps[transactional_id, number])
            committed = leader.groups.shard(group).offsets.get(group, TOPIC, number)
            goes_on_at = {step.begin for step in found} | {committed.offset if committed else 0}
            optional = [each.step for each in twice]
            found = [step for step in found if step not in optional or step.end in goes_on_at]
            ends = [0, *(step.end for step in found)]
            begins = [*(step.begin for step in found), committed.offset if committed else 0]
            if begins != ends:
                violated(
                    "no-offset-without-its-records",
                    f"{group} has committed {committed} in partition {number}, and the transactions "
                    f"that were read go from {begins[:-1]} to {ends[1:]}",
                )


def _leader_of(cluster: VirtualCluster, key: TopicPartition) -> Broker | None:
    state = cluster.nodes.controller.image.partition(key)
    return None if state is None else cluster.nodes.brokers[state.leader]
