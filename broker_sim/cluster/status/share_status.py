"""How far share groups have come in partitions, and which records are in flight, frozen.

The leader of a partition knows it while members of the group are connected. Otherwise it is what the leader has
let the share coordinator keep: what was acquired is not in that, it is available again.
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
"""What may be written is another number too; that is told as it is."""


@dataclass(frozen=True, slots=True)
class InFlightStatus:
    """Records next to each other with which a share group has begun, and which stand alike."""

    first_offset: int
    last_offset: int
    state: str
    """`Acquired`, `Available` (again), or `Acknowledged` and `Archived` behind one that is not done."""
    delivery_count: int
    """How often each of them was delivered."""
    member: str | None
    """The id of the member that has acquired them."""
    lock_left_ms: int | None
    """When they are taken from the member."""

    @property
    def count(self) -> int:
        """How many records they are."""
        return self.last_offset - self.first_offset + 1


@dataclass(frozen=True, slots=True)
class SharePartitionStatus:
    """One partition as a share group reads it."""

    topic: str
    partition: int
    start_offset: int | None
    """All before it is done. None before the group has read there."""
    high_watermark: int | None
    """The end of what can be read; None without a live leader."""
    lag: int | None
    """How many records are not done, as Kafka's tools tell it; None where that is not known."""
    in_flight: tuple[InFlightStatus, ...]

    def count(self, state: str) -> int:
        """Return how many records in flight have that state."""
        return sum(each.count for each in self.in_flight if each.state == state)

    def at(self, offset: int) -> InFlightStatus | None:
        """Return how the record stands, None if it is not in flight: it is done, or nobody had it yet."""
        found = (one for one in self.in_flight if one.first_offset <= offset <= one.last_offset)
        return next(found, None)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "in_flight": [asdict(each) for each in self.in_flight]}


def share_partitions_status(nodes: Nodes, group: ShareGroup) -> Iterator[SharePartitionStatus]:
    """Yield the share partitions of a group that have state, or are about to have it."""
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
"""State, deliveries, member, and what is left of the lock."""
_Part: TypeAlias = tuple[int, int, _Standing]
"""First offset, last offset, and how the records stand."""


class _Known(NamedTuple):
    """What is known of a share partition."""

    start_offset: int
    done_count: int = 0
    """How many records from the start offset on are done."""
    in_flight: tuple[InFlightStatus, ...] = ()


def _share_partition(nodes: Nodes, topic_partition: TopicPartition, key: SharePartitionKey) -> SharePartitionStatus:
    known = _served(nodes, topic_partition, key) or _kept(nodes, key)
    log = leaders_log(nodes, topic_partition)
    has_begun = known.start_offset != UNINITIALIZED_START_OFFSET
    lag = None
    if log is not None and has_begun:
        lag = max(0, log.high_watermark - known.start_offset - max(0, known.done_count))
    elif log is not None:
        lag = _lag_from_reset(nodes, topic_partition, key, log)
    return SharePartitionStatus(
        topic_partition.topic,
        topic_partition.partition,
        known.start_offset if has_begun else None,
        None if log is None else log.high_watermark,
        lag,
        known.in_flight,
    )


def _lag_from_reset(
    nodes: Nodes, topic_partition: TopicPartition, key: SharePartitionKey, log: PartitionLog
) -> int | None:
    """Return what is before a group that will begin where its configuration says."""
    leader = live_leader(nodes, topic_partition)
    assert leader is not None, "its log was found"
    reset = leader.share_partitions.settings.auto_offset_reset(key.group_id)
    if reset.duration_ms is not None:
        return None
    return log.high_watermark - log.log_start_offset if reset.is_earliest else 0


def _served(nodes: Nodes, topic_partition: TopicPartition, key: SharePartitionKey) -> _Known | None:
    """Return what the leader of the partition knows, None while it does not serve the group."""
    leader = live_leader(nodes, topic_partition)
    served = None if leader is None else leader.share_partitions.partitions.get(key)
    if leader is None or served is None or served.state is not SharePartitionState.ACTIVE:
        return None
    records = served.records
    return _Known(
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


def _kept(nodes: Nodes, key: SharePartitionKey) -> _Known:
    """Return what the share coordinator has."""
    unknown = _Known(UNINITIALIZED_START_OFFSET)
    for broker in nodes.brokers.values():
        runtime = broker.share_coordinator.runtime
        partition = runtime.partition_for(key.coordinator_key())
        if live_leader(nodes, TopicPartition(SHARE_GROUP_STATE_TOPIC, partition)) is not broker:
            continue
        try:
            state = runtime.get(partition).shard.states.get(key)
        except ApiError:  # it is being loaded
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
        return _Known(state.start_offset, state.delivery_complete_count, tuple(_joined(parts)))
    return unknown


def _joined(parts: Iterable[_Part]) -> Iterator[InFlightStatus]:
    """Yield the parts, those that are next to each other and stand alike as one."""
    first, end, alike = 0, 0, None
    for first_offset, last_offset, standing in parts:
        if standing != alike or first_offset != end:
            if alike is not None:
                yield InFlightStatus(first, end - 1, *alike)
            first, alike = first_offset, standing
        end = last_offset + 1
    if alike is not None:
        yield InFlightStatus(first, end - 1, *alike)
