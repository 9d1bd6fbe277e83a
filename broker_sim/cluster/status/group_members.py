"""The members of groups of all kinds, and what they have been assigned, frozen."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from broker_sim.group.consumer.consumer_group import ConsumerGroup
from broker_sim.group.consumer.describe import describe_group as describe_consumers
from broker_sim.group.consumer.settings import offered_assignors
from broker_sim.group.consumer_protocol import MalformedConsumerProtocolError, read_assignment
from broker_sim.group.group import CONSUMER
from broker_sim.group.share.describe import describe_group as describe_sharers
from broker_sim.group.share.share_group import ShareGroup
from broker_sim.group.streams.streams_group import StreamsGroup
from broker_sim.metadata.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim.config import BrokerConfig
    from broker_sim.group.group import Group
    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.metadata import MetadataImage
    from broker_sim.protocol import messages

STREAMS_ASSIGNOR: Final = "sticky"


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


def members_of(group: Group, config: BrokerConfig, image: MetadataImage) -> tuple[str, tuple[GroupMemberStatus, ...]]:
    """Return how the group assigns, "" while that is not decided, and its members."""
    if isinstance(group, ConsumerGroup):
        consumers = describe_consumers(group, offered_assignors(config)[0], image)
        return consumers.assignor_name, tuple(map(_modern_member, consumers.members))
    if isinstance(group, ShareGroup):
        sharers = describe_sharers(group, image)
        return sharers.assignor_name, tuple(map(_modern_member, sharers.members))
    if isinstance(group, StreamsGroup):
        members = (group.members[member_id] for member_id in group.members.in_order())
        return STREAMS_ASSIGNOR, tuple(_streams_member(group, each, image) for each in members)
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
    """Tell the partitions that the member's active tasks read."""
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
            assigned = []  # the members may tell each other what they like
        assignment = _partitions((each.topic, each.partitions) for each in assigned)
    return GroupMemberStatus(
        member.member_id, member.group_instance_id, member.client_id, member.client_host, assignment
    )


def _partitions(topics: Iterable[tuple[str, Iterable[int]]]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(topic, each) for topic, numbers in topics for each in numbers))
