"""One share group: its members, what they subscribe to and have, and which share partitions have state.

Mirrors `ShareGroup`; what it shares with groups of the consumer protocol is in `ModernGroup`. It has no
committed offsets: those of its share partitions are with the share coordinator.
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
"""Unlike any partitions that are initialized."""


class ShareGroup(ModernGroup[ShareMember]):
    """The state of one group; its methods change it as records say, or look at it."""

    kind = GroupKind(SHARE, replaces_classic=False)
    member_class = ShareMember
    should_expire = False

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.state_partitions: StatePartitions | None = None
        """None before the first topic is subscribed to, and once the group is being deleted."""

    # -- look-up --------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        """Its state: Empty or Stable."""
        return STABLE if self.members else EMPTY

    @property
    def known_state(self) -> StatePartitions:
        """The share partitions that have state."""
        return self.state_partitions or NO_STATE

    @property
    def has_unassigned_state(self) -> bool:
        """Whether initialized partitions of a subscribed topic are in no target, or others are."""
        assigned: dict[bytes, set[int]] = {}
        for target in self.targets.values():
            for topic_id, numbers in target.items():
                assigned.setdefault(topic_id, set()).update(numbers)
        return any(
            topic.name in self.topics and assigned.get(topic_id, _NOT_ASSIGNED) != set(topic.partitions)
            for topic_id, topic in self.known_state.initialized.items()
        )

    # -- for the coordinator: see `Group` -------------------------------------------------------

    def _refuse(self) -> ApiError:
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def validate_offset_commit(
        self,
        commit: OffsetCommit,  # noqa: ARG002 - other kinds of groups look at it
        is_transactional: bool,  # noqa: ARG002
    ) -> CommitPartitionValidator | None:
        """Refuse it: GROUP_ID_NOT_FOUND."""
        raise self._refuse()

    def validate_offset_fetch(
        self,
        member_id: str | None,  # noqa: ARG002 - other kinds of groups look at it
        member_epoch: int,  # noqa: ARG002
    ) -> None:
        """Refuse it: GROUP_ID_NOT_FOUND."""
        raise self._refuse()

    def validate_offset_delete(self) -> None:
        """Refuse it: GROUP_ID_NOT_FOUND."""
        raise self._refuse()

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return that it has no offsets that could expire."""
        return None

    def newer_commit(self, member: ShareMember, epoch: int) -> ApiError:  # noqa: ARG002 - no epoch is accepted
        """Refuse it: GROUP_ID_NOT_FOUND."""
        return self._refuse()

    def fetch_in_other_epoch(self, member: ShareMember, epoch: int) -> ApiError:  # noqa: ARG002
        """Refuse it: GROUP_ID_NOT_FOUND."""
        return self._refuse()

    def older_commit_check(self, member: ShareMember, epoch: int) -> CommitPartitionValidator:  # noqa: ARG002
        """Refuse it: GROUP_ID_NOT_FOUND."""
        raise self._refuse()

    def own_tombstones(self) -> list[GroupRecord]:
        """Return the record that deletes which share partitions have state; the state itself is deleted before."""
        return [GroupRecord(self.kind.key("StatePartitionMetadata", self.group_id), None)]


ASSIGNOR: Final = "simple"
"""The one assignor of share groups."""
Response = messages.ShareGroupDescribeResponse


def describe_group(group: ShareGroup, image: MetadataImage) -> messages.ShareGroupDescribeResponse.DescribedGroup:
    """Return the description of a group in ShareGroupDescribe; mirrors `ShareGroup.asDescribedGroup`."""
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
