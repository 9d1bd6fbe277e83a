"""One share group: its members, their subscriptions and assignments, and the share partitions with state.

Mirrors `ShareGroup`; the part shared with consumer groups is `ModernGroup`. It has no committed offsets: the share
coordinator stores the state of its share partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.group import SHARE
from broker_sim.group.modern.assigned_group import EMPTY, STABLE, ModernGroup
from broker_sim.group.modern.kind import GroupKind
from broker_sim.group.records import GroupRecord
from broker_sim.group.share.member import ShareMember
from broker_sim.group.share.state_partitions import NO_STATE
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import copied_capacity, hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from broker_sim.group.group import CommitPartitionValidator, OffsetExpiration
    from broker_sim.group.offsets import OffsetCommit
    from broker_sim.group.share.state_partitions import StatePartitions
    from broker_sim.metadata import MetadataImage


_NOT_ASSIGNED: Final[frozenset[int]] = frozenset({-1})
"""Differs from any set of initialized partitions."""


class ShareGroup(ModernGroup[ShareMember]):
    """The state of one group, changed only by replaying records."""

    kind = GroupKind(SHARE, replaces_classic=False)
    member_class = ShareMember
    should_expire = False

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.state_partitions: StatePartitions | None = None
        """None until the first topic is subscribed to, and once the group's record is deleted."""

    # -- look-up --------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        """The group's state: Empty or Stable."""
        return STABLE if self.members else EMPTY

    @property
    def known_state(self) -> StatePartitions:
        """The share partitions with state; empty if there are none."""
        return self.state_partitions or NO_STATE

    @property
    def has_unassigned_state(self) -> bool:
        """Whether the targets differ from the initialized partitions of a subscribed topic."""
        assigned: dict[bytes, set[int]] = {}
        for target in self.targets.values():
            for topic_id, numbers in target.items():
                assigned.setdefault(topic_id, set()).update(numbers)
        return any(
            topic.name in self.topics and assigned.get(topic_id, _NOT_ASSIGNED) != set(topic.partitions)
            for topic_id, topic in self.known_state.initialized.items()
        )

    # -- for the coordinator: see `Group` -------------------------------------------------------

    def _not_a_consumer_group(self) -> ApiError:
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def validate_offset_commit(
        self,
        commit: OffsetCommit,  # noqa: ARG002 - other group types need it
        is_transactional: bool,  # noqa: ARG002
    ) -> CommitPartitionValidator | None:
        """Reject it: GROUP_ID_NOT_FOUND."""
        raise self._not_a_consumer_group()

    def validate_offset_fetch(
        self,
        member_id: str | None,  # noqa: ARG002 - other group types need it
        member_epoch: int,  # noqa: ARG002
    ) -> None:
        """Reject it: GROUP_ID_NOT_FOUND."""
        raise self._not_a_consumer_group()

    def validate_offset_delete(self) -> None:
        """Reject it: GROUP_ID_NOT_FOUND."""
        raise self._not_a_consumer_group()

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return None: the group has no committed offsets."""
        return None

    def own_tombstones(self) -> list[GroupRecord]:
        """Return the tombstone of the share partitions with state; the states themselves are deleted before."""
        return [GroupRecord(self.kind.key("StatePartitionMetadata", self.group_id), None)]


ASSIGNOR: Final = "simple"
"""Name of the only assignor of share groups."""
Response = messages.ShareGroupDescribeResponse


def describe_group(group: ShareGroup, image: MetadataImage) -> messages.ShareGroupDescribeResponse.DescribedGroup:
    """Return the group for ShareGroupDescribe; mirrors `ShareGroup.asDescribedGroup`."""
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
