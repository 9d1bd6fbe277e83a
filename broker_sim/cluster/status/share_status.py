"""Frozen snapshots of the progress of share groups in partitions, and of their records in flight.

While members of the group are connected, the partition's leader has this state. Otherwise it is the state that
the leader has stored at the share coordinator, in which acquired records are available again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from broker_sim.cluster.nodes.nodes import leaders_log, live_leader
from broker_sim.errors import ApiError
from broker_sim.metadata.topic_name import SHARE_GROUP_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.share.partition.record_state import RecordState
from broker_sim.share.partition.share_partition import SharePartitionState
from broker_sim.share.share_state import UNINITIALIZED_START_OFFSET, SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.group.share.share_group import ShareGroup
    from broker_sim.log import PartitionLog
    from broker_sim.share.partition.share_partition import SharePartition

_STATES: Final[dict[int, str]] = {state.value: state.name.capitalize() for state in RecordState}
"""State names by number; an unknown number in stored state is shown as it is."""


@dataclass(frozen=True, slots=True)
class InFlightStatus:
    """Consecutive records in flight with the same state."""

    first_offset: int
    last_offset: int
    state: str
    """`Acquired`, `Available` (again), `Archiving` while the dead letter is written, or `Acknowledged` and `Archived`
    behind an unfinished one."""
    delivery_count: int
    """The number of deliveries of each record."""
    member: str | None
    """The id of the member that has acquired them."""
    lock_left_ms: int | None
    """Time until the acquisition lock expires, in ms."""

    @property
    def count(self) -> int:
        """The number of records."""
        return self.last_offset - self.first_offset + 1


@dataclass(frozen=True, slots=True)
class SharePartitionStatus:
    """One partition as a share group reads it."""

    topic: str
    partition: int
    start_offset: int | None
    """The share-partition start offset; None before the group has read from the partition."""
    high_watermark: int | None
    """The high watermark; None without a live leader."""
    lag: int | None
    """The lag as Kafka's tools show it; None if it is unknown."""
    in_flight: tuple[InFlightStatus, ...]

    def count(self, state: str) -> int:
        """Return the number of records in flight with that state."""
        return sum(each.count for each in self.in_flight if each.state == state)

    def at(self, offset: int) -> InFlightStatus | None:
        """Return the batch in flight with that record, None if the record is finished or was never delivered."""
        batches = (one for one in self.in_flight if one.first_offset <= offset <= one.last_offset)
        return next(batches, None)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "in_flight": [asdict(each) for each in self.in_flight]}


def share_partitions_status(nodes: Nodes, group: ShareGroup) -> Iterator[SharePartitionStatus]:
    """Yield the share partitions of a group that are initialized or being initialized."""
    names = nodes.controller.image.topic_names
    keys = {
        TopicPartition(names[topic_id], number): SharePartitionKey(group.group_id, topic_id, number)
        for topics in (group.known_state.initializing, group.known_state.initialized)
        for topic_id, topic in topics.items()
        if topic_id in names
        for number in topic.partitions
    }
    for topic_partition, key in sorted(keys.items()):
        yield _share_partition(nodes, topic_partition, key)


_Standing: TypeAlias = tuple[str, int, str | None, int | None]
"""State, number of deliveries, member, and remaining time of the lock in ms."""
_Part: TypeAlias = tuple[int, int, _Standing]
"""First offset, last offset, and state of the records."""


class _State(NamedTuple):
    """The state of a share partition."""

    start_offset: int
    done_count: int = 0
    """The number of finished records from the start offset on."""
    in_flight: tuple[InFlightStatus, ...] = ()


def _share_partition(nodes: Nodes, topic_partition: TopicPartition, key: SharePartitionKey) -> SharePartitionStatus:
    state = _served(nodes, topic_partition, key) or _kept(nodes, key)
    log = leaders_log(nodes, topic_partition)
    has_begun = state.start_offset != UNINITIALIZED_START_OFFSET
    lag = None
    if log is not None and has_begun:
        lag = max(0, log.high_watermark - state.start_offset - max(0, state.done_count))
    elif log is not None:
        lag = _lag_from_reset(nodes, topic_partition, key, log)
    return SharePartitionStatus(
        topic_partition.topic,
        topic_partition.partition,
        state.start_offset if has_begun else None,
        None if log is None else log.high_watermark,
        lag,
        state.in_flight,
    )


def _lag_from_reset(
    nodes: Nodes, topic_partition: TopicPartition, key: SharePartitionKey, log: PartitionLog
) -> int | None:
    """Return the lag of a group that has not started: it will start at its configured offset reset."""
    leader = live_leader(nodes, topic_partition)
    assert leader is not None, "the caller has its log"
    reset = leader.share_partitions.settings.auto_offset_reset(key.group_id)
    if reset.duration_ms is not None:
        return None
    return log.high_watermark - log.log_start_offset if reset.is_earliest else 0


def _served(nodes: Nodes, topic_partition: TopicPartition, key: SharePartitionKey) -> _State | None:
    """Return the state in the partition's leader, None if it does not serve the group."""
    leader = live_leader(nodes, topic_partition)
    served = None if leader is None else leader.share_partitions.partitions.get(key)
    if leader is None or served is None or served.state is not SharePartitionState.ACTIVE:
        return None
    records = served.records
    return _State(
        records.start_offset, records.delivery_complete_count, tuple(_joined(_parts(served, leader.clock.now_ms())))
    )


def _parts(served: SharePartition, now_ms: int) -> Iterator[_Part]:
    for batch in served.records.batches:
        for first_offset, last_offset, state in batch.parts():
            if state.is_terminal and last_offset < served.records.start_offset:
                continue
            lock = state.lock
            lock_left_ms = None if lock is None else max(0, lock.expiration_ms - now_ms)
            standing = (_STATES[state.state], state.delivery_count, state.member_id or None, lock_left_ms)
            yield first_offset, last_offset, standing


def _kept(nodes: Nodes, key: SharePartitionKey) -> _State:
    """Return the state stored at the share coordinator."""
    unknown = _State(UNINITIALIZED_START_OFFSET)
    for broker in nodes.brokers.values():
        runtime = broker.share_coordinator.runtime
        partition = runtime.partition_for(key.coordinator_key())
        if live_leader(nodes, TopicPartition(SHARE_GROUP_STATE_TOPIC, partition)) is not broker:
            continue
        try:
            state = runtime.get(partition).shard.states.get(key)
        except ApiError:  # the coordinator is loading
            return unknown
        if state is None:
            return unknown
        parts = (
            (
                batch.first_offset,
                batch.last_offset,
                (_STATES.get(batch.delivery_state, str(batch.delivery_state)), batch.delivery_count, None, None),
            )
            for batch in state.state_batches
        )
        return _State(state.start_offset, state.delivery_complete_count, tuple(_joined(parts)))
    return unknown


def _joined(parts: Iterable[_Part]) -> Iterator[InFlightStatus]:
    """Yield the parts, merging adjacent ones with the same state."""
    first, end, alike = 0, 0, None
    for first_offset, last_offset, standing in parts:
        if standing != alike or first_offset != end:
            if alike is not None:
                yield InFlightStatus(first, end - 1, *alike)
            first, alike = first_offset, standing
        end = last_offset + 1
    if alike is not None:
        yield InFlightStatus(first, end - 1, *alike)
