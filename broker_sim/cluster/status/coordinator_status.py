"""What the coordinators know of groups, frozen.

It is read where it is, without a request. What has no live leader is not told.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from broker_sim.group.consumer_protocol import MalformedConsumerProtocolError, read_assignment
from broker_sim.group.group import CONSUMER
from broker_sim.group.share.describe import describe_group
from broker_sim.group.share.share_group import ShareGroup
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.group.group import Group
    from broker_sim.group.shard import GroupShard
    from broker_sim.log import PartitionLog
    from broker_sim.protocol import messages

__all__ = ["GroupMemberStatus", "GroupOffsetStatus", "GroupStatus", "GroupsStatus", "groups_status",
           "leaders_log", "leads"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupMemberStatus:
    """One member of a group."""

    id: str
    instance_id: str | None
    """The id of a static member."""
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...]
    """What it has been assigned. A classic group tells it while it is stable."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        assignment = [each._asdict() for each in self.assignment]
        return {**asdict(self), "assignment": assignment}


@dataclass(frozen=True, slots=True)
class GroupOffsetStatus:
    """What a group has done of one partition that it has committed, or that a member is assigned."""

    topic: str
    partition: int
    committed_offset: int | None
    """None where it has committed nothing."""
    high_watermark: int | None
    """The end of what it could have read; None without a live leader."""
    lag: int | None
    """What is left to commit, from the log's start where nothing is committed."""


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """One group, as its coordinator knows it."""

    id: str
    type: str
    """`classic` or `consumer`."""
    state: str
    """As Kafka's tools call it: `Stable`, `Empty`, `PreparingRebalance`, ..."""
    assignor: str
    """How partitions are assigned, "" while that is not decided."""
    coordinator: int
    """The broker that coordinates it."""
    members: tuple[GroupMemberStatus, ...]
    offsets: tuple[GroupOffsetStatus, ...]

    @property
    def lag(self) -> int:
        """What is left to commit in all partitions that have a live leader."""
        return sum(offset.lag or 0 for offset in self.offsets)

    def committed(self, topic: str, partition: int = 0) -> int | None:
        """Return the committed offset of a partition, None without one."""
        key = (topic, partition)
        found = (
            each.committed_offset for each in self.offsets if (each.topic, each.partition) == key
        )
        return next(found, None)

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
        }


class GroupsStatus(tuple[GroupStatus, ...]):
    """All groups, by id."""

    __slots__ = ()

    def of(self, group_id: str) -> GroupStatus:
        """Return one group. LookupError, with those that there are, if it is not there."""
        for group in self:
            if group.id == group_id:
                return group
        known = ", ".join(group.id for group in self) or "none"
        raise LookupError(f"there is no group {group_id!r}; there are {known}")

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"groups": [group.to_json() for group in self]}


def groups_status(nodes: Nodes) -> GroupsStatus:
    """Return all groups of all coordinators."""
    found = [
        _group_status(nodes, broker, shard, group)
        for broker in nodes.brokers.values()
        for shard in broker.groups.shards()
        if leads(nodes, broker, GROUP_METADATA_TOPIC, shard.partition)
        for group in shard.groups.values()
    ]
    return GroupsStatus(sorted(found, key=lambda group: group.id))


def leads(nodes: Nodes, broker: Broker, topic: str, partition: int) -> bool:
    """Whether the broker leads it; one that was paused may not have heard that another does now."""
    state = nodes.controller.image.partition(TopicPartition(topic, partition))
    return state is not None and state.leader == broker.broker_id


def _group_status(nodes: Nodes, broker: Broker, shard: GroupShard, group: Group) -> GroupStatus:
    if group.group_type == CONSUMER:
        described = shard.consumer.describe(group.group_id)
        members = tuple(map(_consumer_member, described.members))
        assignor = described.assignor_name
    elif isinstance(group, ShareGroup):
        shared = describe_group(group, nodes.controller.image)
        members = tuple(map(_share_member, shared.members))
        assignor = shared.assignor_name
    else:
        classic = group.describe()
        assert classic is not None
        members = tuple(
            _classic_member(member, classic.protocol_type) for member in classic.members
        )
        assignor = classic.protocol_data
    return GroupStatus(
        group.group_id,
        group.group_type,
        group.state_name,
        assignor,
        broker.broker_id,
        members,
        tuple(_offsets(nodes, shard, group.group_id, members)),
    )


def _consumer_member(member: messages.ConsumerGroupDescribeResponse.Member) -> GroupMemberStatus:
    return GroupMemberStatus(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(
            (each.topic_name, each.partitions) for each in member.assignment.topic_partitions
        ),
    )


def _share_member(member: messages.ShareGroupDescribeResponse.Member) -> GroupMemberStatus:
    assigned = member.assignment.topic_partitions
    return GroupMemberStatus(
        member.member_id,
        None,
        member.client_id,
        member.client_host,
        _partitions((each.topic_name, each.partitions) for each in assigned),
    )


def _classic_member(
    member: messages.DescribeGroupsResponse.DescribedGroupMember, protocol_type: str
) -> GroupMemberStatus:
    assignment: tuple[TopicPartition, ...] = ()
    if protocol_type == CONSUMER and member.member_assignment:
        try:
            assigned = read_assignment(bytes(member.member_assignment)).assigned_partitions
        except MalformedConsumerProtocolError:
            assigned = []  # the members may tell each other what they like
        assignment = _partitions((each.topic, each.partitions) for each in assigned)
    return GroupMemberStatus(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        assignment,
    )


def _partitions(topics: Iterable[tuple[str, Iterable[int]]]) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(TopicPartition(topic, each) for topic, numbers in topics for each in numbers)
    )


def _offsets(
    nodes: Nodes, shard: GroupShard, group_id: str, members: Iterable[GroupMemberStatus]
) -> Iterator[GroupOffsetStatus]:
    committed = {
        TopicPartition(topic, partition): offset.offset
        for topic, partition, offset in shard.offsets.committed_of(
            group_id, shard.runtime.high_watermark
        )
    }
    assigned = {each for member in members for each in member.assignment}
    for key in sorted(committed.keys() | assigned):
        offset, log = committed.get(key), leaders_log(nodes, key)
        lag = end = None
        if log is not None:
            end = log.high_watermark
            lag = max(0, end - (log.log_start_offset if offset is None else offset))
        yield GroupOffsetStatus(key.topic, key.partition, offset, end, lag)


def leaders_log(nodes: Nodes, key: TopicPartition) -> PartitionLog | None:
    """Return the log of the partition's leader, None without a live one."""
    state = nodes.controller.image.partition(key)
    leader = None if state is None else nodes.brokers.get(state.leader)
    partition = None if leader is None else leader.replica_manager.partitions.get(key)
    return None if partition is None else partition.log
