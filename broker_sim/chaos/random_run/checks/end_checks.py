"""Invariants at the end of a random run, when all brokers are back and every transaction is decided.

Lost, duplicate, regressing and uncommitted items are found by the same checkers that users' tests have.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from broker_sim.chaos import checkers
from broker_sim.chaos.faults.action import GROUPS, TRANSACTIONS
from broker_sim.chaos.faults.cluster_faults import COORDINATED
from broker_sim.chaos.random_run.checks.batches import batches_of
from broker_sim.chaos.random_run.checks.transaction_history import Outcome, group_of
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import iter_records
from broker_sim.protocol.special_values import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker_sim.broker.broker import Broker
    from broker_sim.chaos.random_run.checks.group_history import GroupHistory
    from broker_sim.chaos.random_run.checks.history import Acknowledged, History
    from broker_sim.chaos.random_run.checks.transaction_history import OffsetStep, Transaction, TransactionHistory
    from broker_sim.chaos.random_run.schedule import Schedule
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
    from broker_sim.log import PartitionLog


def _leader_of(cluster: VirtualCluster, key: TopicPartition) -> Broker | None:
    state = cluster.nodes.controller.image.partition(key)
    return None if state is None else cluster.nodes.brokers[state.leader]


def _logs(cluster: VirtualCluster, number: int) -> list[PartitionLog]:
    """Return the logs of a partition of the topic, the leader's first."""
    state = cluster.nodes.controller.image.topics[TOPIC].partitions[number]
    replicas = sorted(state.replicas, key=lambda replica: replica != state.leader)
    brokers = [cluster.nodes.brokers[replica] for replica in replicas]
    key = TopicPartition(TOPIC, number)
    return [broker.replica_manager.partitions[key].log for broker in brokers]


# -- records -----------------------------------------------------------------------------------------


def replicas_are_equal(cluster: VirtualCluster, schedule: Schedule) -> bool:
    """Return whether all replicas of every partition have the same log, down to the bytes."""
    for number in range(schedule.partitions):
        logs = [batches_of(log) for log in _logs(cluster, number)]
        if any(log != logs[0] for log in logs):
            return False
    return True


def check_end(cluster: VirtualCluster, schedule: Schedule, history: History) -> None:
    """Compare the logs with the responses to clients; raises InvariantViolationError."""
    for number in range(schedule.partitions):
        log = _logs(cluster, number)[0]
        records: dict[int, bytes | None] = {}
        written: list[bytes | None] = []
        for batch in batches_of(log):
            values = {record.offset: record.value for record in iter_records(batch)}
            records.update(values)
            if not parse_header(batch).is_control:
                written += values.values()
        for one in history.acknowledged:
            value = records.get(one.offset)
            if one.partition != number or value == one.value:
                continue
            if schedule.may_lose_records and _is_lost_with_power(cluster, one):
                history.lost.append(one)
            elif not _may_be_replaced(schedule, one) or not _was_replaced(log, one):
                violated(
                    "acknowledged-records-stay",
                    f"{one.value!r} was acknowledged with acks={one.acks} in leader epoch "
                    f"{one.leader_epoch}, at offset {one.offset} of partition {number}, where the log has "
                    f"{value!r}",
                )
        _check_written_once(history, number, written)
        _check_reads(history, number, records)


def _may_be_replaced(schedule: Schedule, one: Acknowledged) -> bool:
    return one.acks != ACKS_ALL or schedule.unclean_elections


def _is_lost_with_power(cluster: VirtualCluster, one: Acknowledged) -> bool:
    return any(
        loss.topic_partition == (TOPIC, one.partition) and loss.first_offset <= one.offset < loss.end_offset
        for loss in cluster.lost_records
    )


def _was_replaced(log: PartitionLog, one: Acknowledged) -> bool:
    """Return whether a later leader did not have the record.

    Then the record's epoch ends at its offset or before, or the leader had nothing of that epoch: with an ISR below the
    minimum, a member of the ELR whose log ends in an older epoch may lead.
    """
    epochs = log.leader_epoch_cache
    epoch, end_offset = epochs.end_offset_for(one.leader_epoch, log.log_end_offset)
    if epoch == one.leader_epoch:
        return end_offset <= one.offset
    return (epochs.latest_epoch or 0) > one.leader_epoch


def _claim(invariant: str, what: str, text: str) -> None:
    """Raise InvariantViolationError with the text of a checker, if it has one."""
    if text:
        violated(invariant, f"{what}: {text}")


def _check_written_once(history: History, number: int, written: list[bytes | None]) -> None:
    _claim("no-duplicates", f"partition {number}", checkers.twice(written))
    for value in history.refused.intersection(written):
        violated(
            "refused-records-are-not-written",
            f"partition {number} has {value!r}, which was refused before it was appended",
        )


def _check_reads(history: History, number: int, records: dict[int, bytes | None]) -> None:
    if not history.reads_are_final:
        return
    for (partition, offset), value in history.read.items():
        if partition == number and records.get(offset) != value:
            violated(
                "read-records-stay",
                f"{value!r} was read at offset {offset} of partition {number}, where the log has "
                f"{records.get(offset)!r}",
            )


# -- groups ------------------------------------------------------------------------------------------


def check_group(cluster: VirtualCluster, group: str, history: GroupHistory) -> None:
    """Compare a group's offsets at its coordinator with the commits of its members."""
    for number, committed in history.committed.items():
        coordinator = _leader_of(cluster, COORDINATED[GROUPS])
        assert coordinator is not None
        place = (group, f"partition {number}")
        steps = ((place, committed), (place, _offset_of(coordinator, group, number)))
        _claim("committed-offsets-stay", "from what was committed to the end", checkers.gone_back(steps))


def _offset_of(coordinator: Broker, group: str, number: int) -> int:
    """Return the committed offset of a group in a partition; -1 without one."""
    offset = coordinator.groups.shard(group).offsets.get(group, TOPIC, number)
    return -1 if offset is None else offset.offset


# -- dead letters ------------------------------------------------------------------------------------


_OF_LETTERS: Final = ("__dlq.errors.partition", "__dlq.errors.offset")
"""Headers of a dead letter: the partition and the offset of its record."""


def without_letter(cluster: VirtualCluster, topic: str, rejected: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return which of the rejected records have no letter in the topic: none, if it has a partition without leader."""
    if not all(state.has_leader for state in cluster.nodes.controller.image.topics[topic].partitions):
        return []  # the invariant `recovers` is violated
    written = set()
    for letter in cluster.inside.records(topic):
        headers = {name: int(value or 0) for name, value in letter.headers if name in _OF_LETTERS}
        written.add((headers[_OF_LETTERS[0]], headers[_OF_LETTERS[1]]))
    return sorted(set(rejected) - written)


# -- transactions ------------------------------------------------------------------------------------


def transactions_are_decided(cluster: VirtualCluster, schedule: Schedule) -> bool:
    """Return whether no transaction is open, neither at the coordinator nor in any partition."""
    coordinator = _leader_of(cluster, COORDINATED[TRANSACTIONS])
    if coordinator is not None and not all(
        each.state.is_complete and each.pending_state is None for each in coordinator.transactions.states.each()
    ):
        return False
    logs = [_logs(cluster, number)[0] for number in range(schedule.partitions)]
    return all(log.last_stable_offset >= log.log_end_offset for log in logs)


def check_transactions(
    cluster: VirtualCluster, schedule: Schedule, acknowledged: History, history: TransactionHistory
) -> None:
    """Compare the records read with the outcomes that producers know; raises InvariantViolationError."""
    for transaction in history.transactions:
        _check_all_or_nothing(transaction)
    own = [
        one.value
        for one in acknowledged.acknowledged
        if one.acks == ACKS_ALL and not one.value.startswith(b"transactional")
    ]
    _claim(
        "acknowledged-records-are-read",
        "of no transaction, acknowledged, and seen by no read_committed reader",
        checkers.lost(own, history.committed_values),
    )
    stored = ((each.topic, each.partition, each.offset) for each in cluster.inside.records(TOPIC))
    _claim(
        "aborted-transactions-are-not-read",
        "at the end of the run",
        checkers.uncommitted(history.committed_reads, stored),
    )
    _check_offsets(cluster, schedule, history)


def _check_all_or_nothing(transaction: Transaction) -> None:
    """Check that nothing of an aborted transaction was read, and all of a committed one.

    A transaction in doubt was committed if any of it was read.
    """
    all_values = [value for values in transaction.written.values() for value in values]
    missing = checkers.lost(all_values, transaction.seen)
    wrote = f"{transaction} wrote {all_values}, of that {sorted(transaction.seen)} was read"
    if transaction.seen and not transaction.may_be_committed:
        violated("aborted-transactions-are-not-read", wrote)
    elif missing and (transaction.seen or transaction.outcome is Outcome.COMMITTED):
        violated("committed-transactions-are-read", f"{wrote}; {missing}")


def _check_offsets(cluster: VirtualCluster, schedule: Schedule, history: TransactionHistory) -> None:
    """Check that the committed steps of each group are contiguous, up to its committed offset."""
    coordinator = _leader_of(cluster, COORDINATED[GROUPS])
    if coordinator is None:
        return
    steps: dict[tuple[str, int], list[OffsetStep]] = defaultdict(list)
    for each in history.transactions:
        if each.step is not None and each.seen:
            steps[each.transactional_id, each.step.partition].append(each.step)
    for transactional_id in sorted({each.transactional_id for each in history.transactions}):
        group = group_of(transactional_id)
        for number in range(schedule.partitions):
            steps_in_order = sorted(steps[transactional_id, number])
            committed = max(_offset_of(coordinator, group, number), 0)
            ends = [0, *(step.end for step in steps_in_order)]
            begins = [*(step.begin for step in steps_in_order), committed]
            if begins != ends:
                violated(
                    "no-offset-without-its-records",
                    f"{group} has committed {committed} in partition {number}, and the transactions "
                    f"that were read go from {begins[:-1]} to {ends[1:]}",
                )
