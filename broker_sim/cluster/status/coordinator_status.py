"""Frozen snapshots of groups and their members in their coordinators.

They are read directly from the coordinators' state, without a request. Groups of a partition without a live
leader are left out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from broker_sim.cluster.nodes.nodes import leaders_log, leads
from broker_sim.cluster.status.share_status import share_partitions_status
from broker_sim.errors import did_you_mean
from broker_sim.group.consumer.assignors import offered_assignors
from broker_sim.group.consumer.consumer_group import ConsumerGroup
from broker_sim.group.consumer.consumer_group import describe_group as describe_consumers
from broker_sim.group.consumer_protocol import MalformedConsumerProtocolError, read_assignment
from broker_sim.group.group import CONSUMER, SHARE, STREAMS
from broker_sim.group.share.share_group import ShareGroup
from broker_sim.group.share.share_group import describe_group as describe_sharers
from broker_sim.group.streams.streams_group import ASSIGNOR, StreamsGroup
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.cluster.status.share_status import SharePartitionStatus
    from broker_sim.config import BrokerConfig
    from broker_sim.group.group import Group
    from broker_sim.group.shard import GroupShard
    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.metadata import MetadataImage
    from broker_sim.protocol import messages

CLASSIC_STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
STATES: Final = {
    CONSUMER: ("Empty", "Assigning", "Reconciling", "Stable", "Dead"),
    SHARE: ("Empty", "Stable", "Dead"),
    STREAMS: ("Empty", "Assigning", "Reconciling", "Stable", "Dead", "NotReady"),
}
"""States of consumer, share and streams groups."""


def check_group_state(state: str) -> None:
    """Raise ValueError unless some kind of group has a state of that name."""
    names = dict.fromkeys([*CLASSIC_STATES, *chain.from_iterable(STATES.values())])
    if state not in names:
        raise ValueError(f"no group has the state {state!r}{did_you_mean(state, names)}; states: {', '.join(names)}")


@dataclass(frozen=True, slots=True)
class GroupMemberStatus:
    """One member of a group."""

    id: str
    instance_id: str | None
    """The id of a static member."""
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...]
    """The assigned partitions; in a classic group only while it is stable."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        assignment = [each._asdict() for each in self.assignment]
        return {**asdict(self), "assignment": assignment}


def members_of(group: Group, config: BrokerConfig, image: MetadataImage) -> tuple[str, tuple[GroupMemberStatus, ...]]:
    """Return the group's assignor ("" while it is undecided) and its members."""
    if isinstance(group, ConsumerGroup):
        consumers = describe_consumers(group, offered_assignors(config)[0], image)
        return consumers.assignor_name, tuple(map(_modern_member, consumers.members))
    if isinstance(group, ShareGroup):
        sharers = describe_sharers(group, image)
        return sharers.assignor_name, tuple(map(_modern_member, sharers.members))
    if isinstance(group, StreamsGroup):
        members = (group.members[member_id] for member_id in group.members.in_order())
        return ASSIGNOR, tuple(_streams_member(group, each, image) for each in members)
    classic = group.describe()
    assert classic is not None
    return classic.protocol_data, tuple(_classic_member(member, classic.protocol_type) for member in classic.members)


def _modern_member(
    member: messages.ConsumerGroupDescribeResponse.Member | messages.ShareGroupDescribeResponse.Member,
) -> GroupMemberStatus:
    return GroupMemberStatus(
        member.member_id,
        getattr(member, "instance_id", None),  # members of share groups have none
        member.client_id,
        member.client_host,
        _partitions((each.topic_name, each.partitions) for each in member.assignment.topic_partitions),
    )


def _streams_member(group: StreamsGroup, member: StreamsMember, image: MetadataImage) -> GroupMemberStatus:
    return GroupMemberStatus(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(_read_by(group, member, image)),
    )


def _read_by(group: StreamsGroup, member: StreamsMember, image: MetadataImage) -> Iterator[tuple[str, Iterable[int]]]:
    """Yield the partitions that the member's active tasks read, by topic."""
    sources = {} if group.topology is None else group.topology.source_topic_map()
    for name, subtopology in sources.items():
        topic = image.topics.get(name)
        count = 0 if topic is None else len(topic.partitions)
        yield name, (each for each in member.assigned.active.get(subtopology, ()) if each < count)


def _classic_member(
    member: messages.DescribeGroupsResponse.DescribedGroupMember, protocol_type: str
) -> GroupMemberStatus:
    assignment: tuple[TopicPartition, ...] = ()
    if protocol_type == CONSUMER and member.member_assignment:
        try:
            assigned = read_assignment(bytes(member.member_assignment)).assigned_partitions
        except MalformedConsumerProtocolError:
            assigned = []  # members may exchange arbitrary bytes
        assignment = _partitions((each.topic, each.partitions) for each in assigned)
    return GroupMemberStatus(
        member.member_id, member.group_instance_id, member.client_id, member.client_host, assignment
    )


def _partitions(topics: Iterable[tuple[str, Iterable[int]]]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(topic, each) for topic, numbers in topics for each in numbers))


@dataclass(frozen=True, slots=True)
class GroupOffsetStatus:
    """The progress of a group in one partition that is committed, assigned to a member, or shared."""

    topic: str
    partition: int
    committed_offset: int | None
    """The committed offset, None without one; the start offset of a share group."""
    high_watermark: int | None
    """The high watermark; None without a live leader."""
    lag: int | None
    """Number of records after the committed offset (default: the log's start); in a share group not acknowledged."""


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """One group in its coordinator's state."""

    id: str
    type: str
    """`classic`, `consumer`, `share` or `streams`."""
    state: str
    """The state, by the names of Kafka's tools: `Stable`, `Empty`, `PreparingRebalance`, ..."""
    assignor: str
    """The assignor of partitions, "" while it is undecided."""
    coordinator: int
    """The id of the coordinating broker."""
    members: tuple[GroupMemberStatus, ...]
    offsets: tuple[GroupOffsetStatus, ...]
    share_partitions: tuple[SharePartitionStatus, ...] = ()
    """The partitions of a share group, with the records in flight."""

    @property
    def lag(self) -> int:
        """The sum of the lags in all partitions with a live leader."""
        return sum(offset.lag or 0 for offset in self.offsets)

    def committed(self, topic: str, partition: int = 0) -> int | None:
        """Return the committed offset of a partition, None without one."""
        key = (topic, partition)
        offsets = (each.committed_offset for each in self.offsets if (each.topic, each.partition) == key)
        return next(offsets, None)

    def share_partition(self, topic: str, partition: int = 0) -> SharePartitionStatus:
        """Return a partition of a share group. Raises LookupError if the group has not started to read it."""
        for each in self.share_partitions:
            if (each.topic, each.partition) == (topic, partition):
                return each
        raise LookupError(f"group {self.id} has no share partition {topic}-{partition}")

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "id": self.id,
            "type": self.type,
            "state": self.state,
            "assignor": self.assignor,
            "coordinator": self.coordinator,
            "lag": self.lag,
            "members": [member.to_json() for member in self.members],
            "offsets": [asdict(offset) for offset in self.offsets],
            "share_partitions": [partition.to_json() for partition in self.share_partitions],
        }


class GroupsStatus(tuple[GroupStatus, ...]):
    """All groups, by id."""

    __slots__ = ()

    def of(self, group_id: str) -> GroupStatus:
        """Return one group. Raises LookupError with the existing ids."""
        for group in self:
            if group.id == group_id:
                return group
        ids = ", ".join(group.id for group in self) or "none"
        raise LookupError(f"unknown group {group_id!r}; groups: {ids}")

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"groups": [group.to_json() for group in self]}


def groups_status(nodes: Nodes, group_id: str | None = None) -> GroupsStatus:
    """Return all groups of all coordinators, or only the one of that id."""
    groups = [
        _group_status(nodes, broker, shard, group)
        for broker in nodes.brokers.values()
        for shard in broker.group_shards()
        if leads(nodes, broker, GROUP_METADATA_TOPIC, shard.partition)
        for group in shard.groups.values()
        if group_id in {None, group.group_id}
    ]
    return GroupsStatus(sorted(groups, key=lambda group: group.id))


def _group_status(nodes: Nodes, broker: Broker, shard: GroupShard, group: Group) -> GroupStatus:
    assignor, members = members_of(group, broker.config, nodes.controller.image)
    share_partitions: tuple[SharePartitionStatus, ...] = ()
    if isinstance(group, ShareGroup):
        share_partitions = tuple(share_partitions_status(nodes, group))
    return GroupStatus(
        group.group_id,
        group.group_type,
        group.state_name,
        assignor,
        broker.broker_id,
        members,
        tuple(
            map(_share_offset, share_partitions)
            if isinstance(group, ShareGroup)
            else _offsets(nodes, shard, group.group_id, members)
        ),
        share_partitions,
    )


def _share_offset(one: SharePartitionStatus) -> GroupOffsetStatus:
    return GroupOffsetStatus(one.topic, one.partition, one.start_offset, one.high_watermark, one.lag)


def _offsets(
    nodes: Nodes, shard: GroupShard, group_id: str, members: Iterable[GroupMemberStatus]
) -> Iterator[GroupOffsetStatus]:
    committed = {
        TopicPartition(topic, partition): offset.offset
        for topic, partition, offset in shard.offsets.committed_of(group_id, shard.runtime.high_watermark)
    }
    assigned = {each for member in members for each in member.assignment}
    for key in sorted(committed.keys() | assigned):
        offset, log = committed.get(key), leaders_log(nodes, key)
        lag = end = None
        if log is not None:
            end = log.high_watermark
            lag = max(0, end - (log.log_start_offset if offset is None else offset))
        yield GroupOffsetStatus(key.topic, key.partition, offset, end, lag)
