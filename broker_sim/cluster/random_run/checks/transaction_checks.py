"""What must hold for transactions at the end of a random run, when each of them is decided."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from broker_sim.cluster.faults.action import GROUPS, TRANSACTIONS
from broker_sim.cluster.faults.roles import COORDINATED
from broker_sim.cluster.random_run.checks.transaction_history import Outcome, group_of
from broker_sim.cluster.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.special_values import ACKS_ALL

if TYPE_CHECKING:
    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.random_run.checks.history import History
    from broker_sim.cluster.random_run.checks.transaction_history import (
        OffsetStep,
        Transaction,
        TransactionHistory,
    )
    from broker_sim.cluster.random_run.schedule import Schedule
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster

__all__ = ["check_transactions", "transactions_are_decided"]


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


def check_transactions(
    cluster: VirtualCluster,
    schedule: Schedule,
    acknowledged: History,
    history: TransactionHistory,
) -> None:
    """Compare what was read with what producers know; raises InvariantViolationError."""
    for transaction in history.transactions:
        _check_all_or_nothing(transaction)
    for one in acknowledged.acknowledged:
        is_own = not one.value.startswith(b"transactional")
        if is_own and one.acks == ACKS_ALL and one.value not in history.committed_values:
            violated(
                "acknowledged-records-are-read",
                f"{one.value!r} is of no transaction, was acknowledged at offset {one.offset} of "
                f"partition {one.partition}, and no read_committed reader has seen it",
            )
    _check_offsets(cluster, schedule, history)


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
) -> None:
    """Check that the committed steps of each group follow on one another, up to its offset."""
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
