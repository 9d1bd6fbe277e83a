"""How a group of the consumer protocol is described; mirrors `ConsumerGroup.asDescribedGroup`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.modern.assignment import NO_PARTITIONS, epochs_in_order
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import copied_capacity, hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_sim.group.consumer.consumer_group import ConsumerGroup
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.modern.assignment import Partitions
    from broker_sim.metadata import MetadataImage

Response = messages.ConsumerGroupDescribeResponse
CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe_group(group: ConsumerGroup, default_assignor: str, image: MetadataImage) -> Response.DescribedGroup:
    """Return what ConsumerGroupDescribe tells of a group."""
    return Response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=[
            _describe_member(group.members[member_id], group.targets.get(member_id, NO_PARTITIONS), image)
            for member_id in group.members.in_order()
        ],
    )


def _describe_member(member: ConsumerMember, target: Partitions, image: MetadataImage) -> Response.Member:
    names = member.names_in_order
    return Response.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=hash_order(names, string_hash, copied_capacity(len(names))),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_owned(member, image),
        target_assignment=_assignment(target.items(), image),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _owned(member: ConsumerMember, image: MetadataImage) -> Response.Assignment:
    """Return what the member has, including what it has to give up: until then it is its own."""
    owned: dict[bytes, list[int]] = {}
    for epochs in (member.assigned, member.pending_revocation):
        for topic_id, numbers in epochs_in_order(epochs):
            owned.setdefault(topic_id, []).extend(numbers)
    return _assignment(owned.items(), image)


def _assignment(partitions: Iterable[tuple[bytes, Sequence[int]]], image: MetadataImage) -> Response.Assignment:
    names = image.topic_names
    return Response.Assignment(
        [
            Response.TopicPartitions(topic_id, names[topic_id], list(numbers))
            for topic_id, numbers in partitions
            if topic_id in names
        ]
    )
