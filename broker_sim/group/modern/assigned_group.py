"""A group with heartbeats and server-side assignment: a consumer, share or streams group.

Mirrors `ModernGroup`, and what it has in common with `StreamsGroup`. All state results from replaying records.
Three epochs show the progress of a group:
* the group epoch increases with every change of subscriptions, members or topics
* the assignment epoch is the group epoch for which the target assignment was computed
* a member's epoch is the assignment epoch to which it has reconciled

Deliberate difference: descriptions show the newest members and targets of a group, in Kafka the committed ones.
Whether a group exists is taken from the committed view in both (`GroupTimeline`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

from broker_sim.errors import ERROR_TEXTS, ApiError, ErrorCode
from broker_sim.group.group import OffsetExpiration
from broker_sim.group.modern.assignment import (
    NO_PARTITIONS,
    Partitions,
    TopicCounts,
    is_homogeneous,
    same_partitions,
    target_from_record,
)
from broker_sim.group.modern.records import group_tombstones
from broker_sim.group.records import GroupRecord
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import TimelineMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from broker_sim.group.group import CommitPartitionValidator
    from broker_sim.group.modern.kind import GroupKind
    from broker_sim.group.offsets import OffsetCommit

FIRST_EPOCH: Final = 1
JOIN_GROUP_EPOCH: Final = 0
"""Member epoch in a request to join."""
LEAVE_GROUP_EPOCH: Final = -1
"""Member epoch in a request to leave permanently."""
LEAVE_GROUP_STATIC_EPOCH: Final = -2
"""Member epoch of a static member that leaves temporarily."""
NO_TARGET_EPOCH: Final = -1
NO_MEMBER_EPOCH: Final = -1
"""Member epoch in a transactional commit that does not name the member."""
MEMBER_EPOCH_VERSION: Final = 9
"""First version of OffsetCommit that members of these groups may use."""

EMPTY: Final = "Empty"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"


class MemberState(IntEnum):
    """The progress of a member towards its target; mirrors the `MemberState` of consumer and streams groups."""

    STABLE = 0
    """The member has its target."""
    UNREVOKED = 1
    """The member must revoke partitions or tasks first."""
    UNRELEASED = 2
    """The member waits for partitions or tasks that other members still own."""
    UNKNOWN = 127

    @classmethod
    def from_record(cls, number: int, first: int) -> MemberState:
        """Return the state with that number in records that number STABLE as `first`; UNKNOWN for later states."""
        return _KNOWN_STATES.get(number - first, cls.UNKNOWN)

    def number(self, first: int) -> int:
        """Return the number of the state in records that number STABLE as `first`."""
        return self.value if self is MemberState.UNKNOWN else first + self.value


_KNOWN_STATES: Final = {state.value: state for state in MemberState}


class Member(Protocol):
    """A member of any type of group. Members are immutable: each change creates a new one."""

    @property
    def member_id(self) -> str:
        """The member id."""

    @property
    def member_epoch(self) -> int:
        """The assignment epoch to which the member has reconciled."""

    @property
    def previous_member_epoch(self) -> int:
        """The member's epoch before the current one."""

    @property
    def instance_id(self) -> str | None:
        """The instance id of a static member, which survives restarts; None for other members."""

    @property
    def client_id(self) -> str:
        """The client id."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """The time that the member has to revoke partitions or tasks."""

    @property
    def is_revoking(self) -> bool:
        """Whether the member must revoke something before it gets the epoch of its target."""

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether the member's assignment equals the target of that epoch."""

    def with_metadata(self, value: Any) -> Self:
        """Return the member with the subscription in a record."""

    def with_assignment(self, value: Any) -> Self:
        """Return the member with the epoch and assignment in a record."""

    def without_assignment(self) -> Self:
        """Return the member after leaving permanently."""


M = TypeVar("M", bound=Member)
T = TypeVar("T")


class AssignedGroup(ABC, Generic[M, T]):
    """A group of members `M` with targets `T`; its state is changed only by replaying records."""

    kind: ClassVar[GroupKind]
    member_class: ClassVar[type[Any]]
    no_target: ClassVar[Any]
    """Target of a member without an assignment."""
    should_expire = True

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """Wall-clock time at which the target was computed; 0 if never."""
        self.members: TimelineMap[str, M] = TimelineMap(string_hash)
        self.static_members: dict[str, str] = {}
        """Member ids by instance id; empty in share groups."""
        self.targets: dict[str, T] = {}
        self._refreshed_epoch: int | None = None

    # -- look-up --------------------------------------------------------------------------------

    @property
    def group_type(self) -> str:
        """The name of the group's kind."""
        return self.kind.name

    @property
    def protocol_type(self) -> str:
        """The protocol type, which is the name of the group's kind."""
        return self.kind.name

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def member_count(self) -> int:
        """Number of members."""
        return len(self.members)

    @property
    def state_name(self) -> str:
        """The group's state: Empty, Assigning, Reconciling or Stable."""
        if not self.members:
            return EMPTY
        epoch = self.assignment_epoch
        if self.group_epoch > epoch:
            return ASSIGNING
        return STABLE if all(member.is_reconciled_to(epoch) for member in self.members.values()) else RECONCILING

    def member(self, member_id: str) -> M:
        """Return the member. Raises `ApiError` UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def member_or_new(self, member_id: str) -> M:
        """Return the member, or a new one with that id."""
        member: M = self.members.get(member_id) or self.member_class(member_id)
        return member

    def static_member_id(self, instance_id: str | None) -> str | None:
        """Return the member id of the static member with that instance id, or None."""
        return None if instance_id is None else self.static_members.get(instance_id)

    def static_member(self, instance_id: str | None) -> M | None:
        """Return the static member with that instance id, or None."""
        member_id = self.static_member_id(instance_id)
        return None if member_id is None else self.member(member_id)

    def replaced_id(self, member: M) -> str | None:
        """Return the member id of the static member that the member replaces, or None."""
        static_id = self.static_member_id(member.instance_id)
        return None if static_id == member.member_id else static_id

    def target_of(self, member: M) -> T:
        """Return the member's target; for a static member, the target of its instance id."""
        member_id = member.member_id if member.instance_id is None else self.static_member_id(member.instance_id)
        target: T = self.no_target if member_id is None else self.targets.get(member_id, self.no_target)
        return target

    def is_same_target(self, target: T, other: T) -> bool:
        """Return whether both targets assign the same."""
        return target == other

    def may_compute_target(self, interval_ms: int, now_ms: int) -> bool:
        """Return whether the minimum interval between two targets has elapsed; `now_ms` is wall-clock."""
        computed_ms = self.assignment_timestamp_ms
        return not computed_ms or not interval_ms or now_ms >= computed_ms + interval_ms

    @abstractmethod
    def depends_on(self, topics: AbstractSet[str]) -> bool:
        """Return whether changes of these topics may change the target."""

    # -- the topics' metadata ---------------------------------------------------------------------

    @property
    def has_metadata_expired(self) -> bool:
        """Whether the topics must be checked again, also if the epoch of the last check was not written."""
        return self._refreshed_epoch is None or self.group_epoch < self._refreshed_epoch

    def metadata_refreshed(self, group_epoch: int) -> None:
        """Record that the topics were checked, which resulted in this group epoch."""
        self._refreshed_epoch = group_epoch

    def request_metadata_refresh(self) -> None:
        """Have the next heartbeat check the topics, because one of them has changed."""
        self._refreshed_epoch = None

    # -- replay: see `replay_into` ------------------------------------------------------------------

    @abstractmethod
    def target_of_record(self, value: Any) -> T:
        """Return the target in a record."""

    @abstractmethod
    def value_of_target(self, target: T) -> Any:
        """Return the record value of a target."""

    @abstractmethod
    def member_added(self, member: M) -> None:
        """Add the member to the group's counts."""

    @abstractmethod
    def member_removed(self, member: M) -> None:
        """Remove the member from the group's counts."""

    def update_member(self, member: M) -> None:
        """Add the member, or replace its previous state."""
        old = self.members.get(member.member_id)
        self.members.put(member.member_id, member)
        if old is not None:
            self._uncount(old)
        self.member_added(member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        """Remove the member, which must be in the group."""
        self._uncount(self.members.pop(member_id))

    def _uncount(self, member: M) -> None:
        self.member_removed(member)
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)

    def update_epoch(self, value: Any) -> None:
        """Set the group epoch from its record."""
        self.group_epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def update_target_epoch(self, value: Any) -> None:
        """Set the epoch and time of the target from its record; None resets them."""
        if value is None:
            self.assignment_epoch, self.assignment_timestamp_ms = NO_TARGET_EPOCH, 0
        else:
            self.assignment_epoch, self.assignment_timestamp_ms = value.assignment_epoch, value.assignment_timestamp

    def update_target(self, member_id: str, target: T) -> None:
        """Set a member's target."""
        self.targets[member_id] = target

    def remove_target(self, member_id: str) -> None:
        """Remove a member's target."""
        self.targets.pop(member_id, None)

    # -- for the coordinator: see `Group` -------------------------------------------------------

    def validate_offset_commit(self, commit: OffsetCommit, is_transactional: bool) -> CommitPartitionValidator | None:
        """Check the member; in an older epoch it may commit for partitions that it has owned since then (KIP-1251)."""
        epoch = commit.generation_id_or_member_epoch
        # A commit from outside the group, for example by a tool.
        if epoch < 0 and not self.members:
            return None
        # A transactional commit that does not name the member.
        names_member = commit.member_id or commit.group_instance_id is not None
        if is_transactional and epoch == NO_MEMBER_EPOCH and not names_member:
            return None
        member = self.member(commit.member_id)
        if not is_transactional and commit.api_version < MEMBER_EPOCH_VERSION and self.knows_member_epochs(member):
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"OffsetCommit version {MEMBER_EPOCH_VERSION} or above must be used by members using "
                f"the {self.kind.name} group protocol",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise self.newer_commit(member, epoch)
        return self.older_commit_check(member, epoch)

    def knows_member_epochs(self, member: M) -> bool:  # noqa: ARG002 - only consumer groups have classic members
        """Return whether the member uses the group's own protocol."""
        return True

    def newer_commit(self, member: M, epoch: int) -> ApiError:
        """Return the error of an offset commit in an epoch newer than the member's."""
        raise NotImplementedError

    def older_commit_check(self, member: M, epoch: int) -> CommitPartitionValidator:
        """Return a check per partition: commits in an older epoch are valid if the member has owned it since then."""
        raise NotImplementedError

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check the member's epoch; a request that names neither member nor epoch may fetch."""
        if member_id is None and member_epoch < 0:
            return
        if member_id is None:  # as in Kafka, where looking up null in a hash table fails
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        member = self.member(member_id)
        if member_epoch != member.member_epoch:
            raise self.fetch_in_other_epoch(member, member_epoch)

    def fetch_in_other_epoch(self, member: M, epoch: int) -> ApiError:
        """Return the error of an offset fetch in another epoch than the member's."""
        raise NotImplementedError

    def validate_offset_delete(self) -> None:
        """Accept any group: topics that members subscribe to are rejected one by one."""

    def validate_delete_group(self) -> None:
        """Raise `ApiError` NON_EMPTY_GROUP unless the group is empty."""
        if self.members:
            code = ErrorCode.NON_EMPTY_GROUP
            raise ApiError(code, ERROR_TEXTS[code])

    def target_record(self, member_id: str, target: T) -> GroupRecord:
        """Return the record of a member's target."""
        key = self.kind.key("TargetAssignmentMember", self.group_id, member_id)
        return GroupRecord(key, self.value_of_target(target))

    def tombstones(self) -> list[GroupRecord]:
        """Return the tombstones of the group."""
        return group_tombstones(self.kind, self.group_id, self.members.in_order(), self.own_tombstones())

    def own_tombstones(self) -> Iterable[GroupRecord]:
        """Return the tombstones of record types that only this kind of group has."""
        return ()

    def describe(self) -> None:
        """Return None: DescribeGroups only shows classic groups."""

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return an expiration in which each offset's retention starts at its commit."""
        return OffsetExpiration(None)


class SubscribingMember(Member, Protocol):
    """A member that subscribes to topics."""

    @property
    def subscribed_topic_names(self) -> frozenset[str]:
        """The topic names that the member subscribes to."""


S = TypeVar("S", bound=SubscribingMember)


class ModernGroup(AssignedGroup[S, Partitions], Generic[S]):
    """A group whose members subscribe to topics and are assigned partitions; mirrors `ModernGroup`."""

    no_target = NO_PARTITIONS
    regexes: Mapping[str, int]
    """Number of members per regular expression; empty in share groups."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.regexes = {}
        self.topics = TopicCounts()
        self.is_homogeneous = True
        """Whether all members subscribe to the same topics, as of the last change of a member."""

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Whether a member subscribes to the topic by name or regular expression."""
        return topic in self.topics

    def depends_on(self, topics: AbstractSet[str]) -> bool:
        """Return whether a member subscribes to one of these topics."""
        return not topics.isdisjoint(self.topics)

    def is_same_target(self, target: Partitions, other: Partitions) -> bool:
        """Return whether both have the same partitions, in any order."""
        return same_partitions(target, other)

    def topics_with(self, old: S, new: S) -> TopicCounts:
        """Return the group's subscribed topics after `new` has replaced `old`."""
        counts = self.topics.copied()
        counts.add_names(old.subscribed_topic_names, -1)
        counts.add_names(new.subscribed_topic_names, 1)
        return counts

    def topics_without(self, members: Iterable[S]) -> TopicCounts:
        """Return the group's subscribed topics without these members."""
        counts = self.topics.copied()
        for member in members:
            counts.add_names(member.subscribed_topic_names, -1)
        return counts

    def target_of_record(self, value: Any) -> Partitions:
        """Return the target in a record."""
        return target_from_record((topic.topic_id, topic.partitions) for topic in value.topic_partitions)

    def value_of_target(self, target: Partitions) -> Any:
        """Return the record value of a target."""
        value = self.kind.value_class("TargetAssignmentMember")
        return value([value.TopicPartition(topic, list(numbers)) for topic, numbers in target.items()])

    def update_member(self, member: S) -> None:
        """Add the member, or replace its previous state."""
        super().update_member(member)
        self.is_homogeneous = is_homogeneous(self.regexes, self.topics, len(self.members))

    def remove_member(self, member_id: str) -> None:
        """Remove the member, which must be in the group."""
        super().remove_member(member_id)
        self.is_homogeneous = is_homogeneous(self.regexes, self.topics, len(self.members))

    def member_added(self, member: S) -> None:
        """Add the member's topics to the counts."""
        self.topics.add_names(member.subscribed_topic_names, 1)

    def member_removed(self, member: S) -> None:
        """Remove the member from the group's counts."""
        self.topics.add_names(member.subscribed_topic_names, -1)
