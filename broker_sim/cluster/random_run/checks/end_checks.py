"""What must hold at the end of a random run, when all brokers are back and all logs are equal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker_sim.cluster.random_run.checks.batches import batches_of
from broker_sim.cluster.random_run.checks.coordinators import GROUPS_PARTITION
from broker_sim.cluster.random_run.checks.power_checks import is_lost_with_power
from broker_sim.cluster.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import iter_records
from broker_sim.protocol.special_values import ACKS_ALL

if TYPE_CHECKING:
    from broker_sim.cluster.random_run.checks.group_history import CommitHistory
    from broker_sim.cluster.random_run.checks.history import Acknowledged, History
    from broker_sim.cluster.random_run.schedule import Schedule
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
    from broker_sim.log import PartitionLog

__all__ = ["check_end", "check_group", "replicas_are_equal"]


def replicas_are_equal(cluster: VirtualCluster, schedule: Schedule) -> bool:
    """Return whether all replicas of every partition have the same log, down to the bytes."""
    for number in range(schedule.partitions):
        logs = [batches_of(log) for log in _logs(cluster, number)]
        if any(log != logs[0] for log in logs):
            return False
    return True


def check_end(cluster: VirtualCluster, schedule: Schedule, history: History) -> None:
    """Compare the logs with what the clients have learned; raises InvariantViolationError."""
    for number in range(schedule.partitions):
        log = _logs(cluster, number)[0]
        records: dict[int, bytes | None] = {}
        markers: set[int] = set()
        for batch in batches_of(log):
            found = {record.offset: record.value for record in iter_records(batch)}
            records.update(found)
            if parse_header(batch).is_control:
                markers.update(found)
        _check_acknowledged(cluster, schedule, history, number, log, records)
        written = {offset: value for offset, value in records.items() if offset not in markers}
        _check_written_once(history, number, written)
        _check_reads(history, number, records)


def check_group(cluster: VirtualCluster, group: str, history: CommitHistory) -> None:
    """Compare a group's offsets at its coordinator with what its members have committed."""
    if not history.committed:
        return
    state = cluster.nodes.controller.image.partition(GROUPS_PARTITION)
    assert state is not None
    offsets = cluster.nodes.brokers[state.leader].groups.shard(group).offsets
    for number, committed in history.committed.items():
        found = offsets.get(group, TOPIC, number)
        if found is None or found.offset < committed:
            violated(
                "committed-offsets-stay",
                f"offset {committed} of partition {number} was committed, and at the end there is "
                f"{found}",
            )


def _logs(cluster: VirtualCluster, number: int) -> list[PartitionLog]:
    """Return the logs of a partition, the leader's first."""
    key = TopicPartition(TOPIC, number)
    state = cluster.nodes.controller.image.partition(key)
    assert state is not None
    replicas = sorted(state.replicas, key=lambda replica: replica != state.leader)
    return [
        cluster.nodes.brokers[replica].replica_manager.partitions[key].log for replica in replicas
    ]


def _check_acknowledged(
    cluster: VirtualCluster,
    schedule: Schedule,
    history: History,
    number: int,
    log: PartitionLog,
    records: dict[int, bytes | None],
) -> None:
    for one in history.acknowledged:
        if one.partition != number or records.get(one.offset) == one.value:
            continue
        if schedule.may_lose_records and is_lost_with_power(cluster, TOPIC, one):
            history.lost.append(one)
            continue
        if one.acks == ACKS_ALL and not schedule.unclean_elections:
            _lost(one, "by all in-sync replicas", records)
        elif not _was_replaced(log, one):
            _lost(one, "and no leader has been elected since", records)


def _was_replaced(log: PartitionLog, one: Acknowledged) -> bool:
    """Return whether a later leader did not have the record.

    Then its epoch ends at the record's offset or before, or it had nothing at all of that epoch: with
    an ISR below the minimum a member of the ELR may lead whose log ends in an older epoch.
    """
    epochs = log.leader_epoch_cache
    epoch, end_offset = epochs.end_offset_for(one.leader_epoch, log.log_end_offset)
    if epoch == one.leader_epoch:
        return end_offset <= one.offset
    return (epochs.latest_epoch or 0) > one.leader_epoch


def _lost(one: Acknowledged, how: str, records: dict[int, bytes | None]) -> None:
    violated(
        "acknowledged-records-stay",
        f"{one.value!r} was acknowledged {how}, at offset {one.offset} of partition {one.partition}, "
        f"where the log has {records.get(one.offset)!r}",
    )


def _check_written_once(history: History, number: int, records: dict[int, bytes | None]) -> None:
    for value, count in Counter(records.values()).items():
        if count > 1:
            violated("no-duplicates", f"partition {number} has {value!r} {count} times")
        if value in history.refused:
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
