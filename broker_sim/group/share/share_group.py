"""One share group: its members, what they subscribe to and have, and which share partitions have state.

Mirrors `ShareGroup`; what it shares with groups of the consumer protocol is in `ModernGroup`. It has no
committed offsets: those of its share partitions are with the share coordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ERROR_TEXTS, ApiError, ErrorCode
from broker_sim.group.group import SHARE
from broker_sim.group.modern.counting import is_homogeneous
from broker_sim.group.modern.modern_group import ModernGroup
from broker_sim.group.share import records
from broker_sim.group.share.state_partitions import NO_STATE

if TYPE_CHECKING:
    from broker_sim.group.group import CommitPartitionValidator, OffsetExpiration
    from broker_sim.group.modern.topic_counts import TopicCounts
    from broker_sim.group.offset_commit import OffsetCommit
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.share.member import ShareMember
    from broker_sim.group.share.state_partitions import StatePartitions

PROTOCOL_TYPE: Final = "share"
EMPTY: Final = "Empty"
STABLE: Final = "Stable"
_NO_REGEXES: Final[dict[str, int]] = {}
_NOT_ASSIGNED: Final[frozenset[int]] = frozenset({-1})
"""Unlike any partitions that are initialized."""


class ShareGroup(ModernGroup["ShareMember"]):
    """The state of one group; its methods change it as records say, or look at it."""

    group_type = SHARE
    protocol_type = PROTOCOL_TYPE
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

    def next_topics(self, old: ShareMember, new: ShareMember | None) -> TopicCounts:
        """Return the topics that are subscribed to with `new` in the place of `old`, or nobody."""
        counts = self.topics.copied()
        counts.add_names(old.subscribed_topic_names, -1)
        if new is not None:
            counts.add_names(new.subscribed_topic_names, 1)
        return counts

    def is_homogeneous_with(self, topics: TopicCounts, members: int) -> bool:
        """Return whether as many members as there are subscribe to the same of these topics."""
        return is_homogeneous(_NO_REGEXES, topics, members)

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

    # -- changes --------------------------------------------------------------------------------

    def update_member(self, member: ShareMember) -> None:
        """Add the member or replace its state."""
        old = self.members.get(member.member_id)
        self.members.put(member.member_id, member)
        if old is not None:
            self.topics.add_names(old.subscribed_topic_names, -1)
        self.topics.add_names(member.subscribed_topic_names, 1)
        self.is_homogeneous = self.is_homogeneous_with(self.topics, len(self.members))

    def remove_member(self, member_id: str) -> None:
        """Remove the member."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self.topics.add_names(old.subscribed_topic_names, -1)
        self.is_homogeneous = self.is_homogeneous_with(self.topics, len(self.members))

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

    def validate_delete_group(self) -> None:
        """Check that it is empty: NON_EMPTY_GROUP."""
        if self.members:
            code = ErrorCode.NON_EMPTY_GROUP
            raise ApiError(code, ERROR_TEXTS[code])

    def tombstones(self) -> list[GroupRecord]:
        """Return the records that delete the group; the state of its share partitions is deleted before."""
        return records.group_tombstones(self.group_id, self.members.in_order())

    def describe(self) -> None:
        """Return that DescribeGroups, which is for classic groups, does not show it."""

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return that it has no offsets that could expire."""
        return None
