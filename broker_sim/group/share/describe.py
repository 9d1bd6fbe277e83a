"""How a share group is described; mirrors `ShareGroup.asDescribedGroup`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import copied_capacity, hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from broker_sim.group.share.member import ShareMember
    from broker_sim.group.share.share_group import ShareGroup
    from broker_sim.metadata import MetadataImage

ASSIGNOR: Final = "simple"
"""The one assignor of share groups."""
Response = messages.ShareGroupDescribeResponse


def describe_group(group: ShareGroup, image: MetadataImage) -> messages.ShareGroupDescribeResponse.DescribedGroup:
    """Return what ShareGroupDescribe tells of a group."""
    return Response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=[_describe_member(group.members[member_id], image) for member_id in group.members.in_order()],
    )


def _describe_member(member: ShareMember, image: MetadataImage) -> messages.ShareGroupDescribeResponse.Member:
    names = member.names_in_order
    return Response.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=hash_order(names, string_hash, copied_capacity(len(names))),
        assignment=Response.Assignment(
            [
                Response.TopicPartitions(topic_id, image.topic_names[topic_id], list(numbers))
                for topic_id, numbers in member.assigned_in_order
                if topic_id in image.topic_names
            ]
        ),
    )
