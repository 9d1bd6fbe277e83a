"""A group whose members send heartbeats and whose coordinator assigns: a consumer, share or streams group.

Mirrors what `ModernGroup` and `StreamsGroup` have in common, and `ModernGroup` itself. All state is made from
records: whoever writes one replays it here. Three epochs tell how far the group is:
* the group epoch grows with every change of subscriptions, of members, or of topics
* the assignment epoch is the group epoch that the target was computed for
* a member's epoch is the assignment epoch that it has reconciled to

Deliberate difference: members and targets of a group are shown as they are now; Kafka describes and lists
them as they are committed. Whether a group exists is shown as it is committed (`GroupTimeline`).
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
"""The epoch that a member names to join."""
LEAVE_GROUP_EPOCH: Final = -1
"""The epoch of a member that leaves for good."""
LEAVE_GROUP_STATIC_EPOCH: Final = -2
"""The epoch of a static member that leaves and will come back."""
NO_TARGET_EPOCH: Final = -1
NO_MEMBER_EPOCH: Final = -1
"""The epoch in a commit of a transaction that names no member."""
MEMBER_EPOCH_VERSION: Final = 9
"""First version of OffsetCommit that members of these groups may use."""

EMPTY: Final = "Empty"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"


class MemberState(IntEnum):
    """The progress of a member towards its target; mirrors the `MemberState` of consumer and of streams groups."""

    STABLE = 0
    """The member has its target."""
    UNREVOKED = 1
    """The member has to give partitions or tasks up first."""
    UNRELEASED = 2
    """The member waits for partitions or tasks that others still own."""
    UNKNOWN = 127

    @classmethod
    def from_record(cls, number: int, first: int) -> MemberState:
        """Return the state of a record whose kind numbers STABLE as `first`, UNKNOWN for one of a later Kafka."""
        return _KNOWN_STATES.get(number - first, cls.UNKNOWN)

    def number(self, first: int) -> int:
        """Return the number in records of a kind that numbers STABLE as `first`."""
        return self.value if self is MemberState.UNKNOWN else first + self.value


_KNOWN_STATES: Final = {state.value: state for state in MemberState}


class Member(Protocol):
    """A member of any kind, which never changes: each change makes another one."""

    @property
    def member_id(self) -> str:
        """Its id."""

    @property
    def member_epoch(self) -> int:
        """The assignment epoch that it has reconciled to."""

    @property
    def previous_member_epoch(self) -> int:
        """Its epoch before."""

    @property
    def instance_id(self) -> str | None:
        """The id that a static member keeps when it leaves for a while; None for any other."""

    @property
    def client_id(self) -> str:
        """The id of its client."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest time to give up what is revoked."""

    @property
    def is_revoking(self) -> bool:
        """Whether it has to give something up before it gets the epoch of its target."""

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether it has all of the target of that epoch, and nothing else."""

    def with_metadata(self, value: Any) -> Self:
        """Return the member with the subscription of a record."""

    def with_assignment(self, value: Any) -> Self:
        """Return the member with the epoch and the assignment of a record."""

    def without_assignment(self) -> Self:
        """Return the member as it is once it has left."""


M = TypeVar("M", bound=Member)
T = TypeVar("T")


class AssignedGroup(ABC, Generic[M, T]):
    """A group of members `M` that have targets `T`; its methods change it as records say, or look at it."""

    kind: ClassVar[GroupKind]
    member_class: ClassVar[type[Any]]
    no_target: ClassVar[Any]
    """The target of a member that has none."""
    should_expire = True

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """Time at which the target was computed (wall clock); 0 if never."""
        self.members: TimelineMap[str, M] = TimelineMap(string_hash)
        self.static_members: dict[str, str] = {}
        """The ids of static members by their instance ids; share groups have none."""
        self.targets: dict[str, T] = {}
        self._refreshed_epoch: int | None = None

    # -- look-up --------------------------------------------------------------------------------

    @property
    def group_type(self) -> str:
        """The name of its kind."""
        return self.kind.name

    @property
    def protocol_type(self) -> str:
        """The protocol of its members: the name of its kind."""
        return self.kind.name

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    def member_count(self) -> int:
        """Number of members."""
        return len(self.members)

    @property
    def state_name(self) -> str:
        """Its state: Empty, Assigning, Reconciling or Stable."""
        if not self.members:
            return EMPTY
        epoch = self.assignment_epoch
        if self.group_epoch > epoch:
            return ASSIGNING
        return STABLE if all(member.is_reconciled_to(epoch) for member in self.members.values()) else RECONCILING

    def member(self, member_id: str) -> M:
        """Return the member; `ApiError` UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def member_or_new(self, member_id: str) -> M:
        """Return the member, or a new one with that id."""
        member: M = self.members.get(member_id) or self.member_class(member_id)
        return member

    def static_member_id(self, instance_id: str | None) -> str | None:
        """Return the id of the static member with that instance id, or None."""
        return None if instance_id is None else self.static_members.get(instance_id)

    def static_member(self, instance_id: str | None) -> M | None:
        """Return the static member with that instance id, or None."""
        member_id = self.static_member_id(instance_id)
        return None if member_id is None else self.member(member_id)

    def replaced_id(self, member: M) -> str | None:
        """Return the id of the static member whose place the member takes, None without one."""
        static_id = self.static_member_id(member.instance_id)
        return None if static_id == member.member_id else static_id

    def target_of(self, member: M) -> T:
        """Return the member's target; that of a static member is the one of its instance id."""
        member_id = member.member_id if member.instance_id is None else self.static_member_id(member.instance_id)
        target: T = self.no_target if member_id is None else self.targets.get(member_id, self.no_target)
        return target

    def is_same_target(self, target: T, other: T) -> bool:
        """Return whether both assign the same."""
        return target == other

    def may_compute_target(self, interval_ms: int, now_ms: int) -> bool:
        """Return whether the shortest time between two targets is over (wall clock)."""
        computed_ms = self.assignment_timestamp_ms
        return not computed_ms or not interval_ms or now_ms >= computed_ms + interval_ms

    @abstractmethod
    def depends_on(self, topics: AbstractSet[str]) -> bool:
        """Return whether a change of one of these topics may change the target."""

    # -- the topics' metadata ---------------------------------------------------------------------

    @property
    def has_metadata_expired(self) -> bool:
        """Whether the topics have to be looked at again; also if the epoch of the last look was not written."""
        return self._refreshed_epoch is None or self.group_epoch < self._refreshed_epoch

    def metadata_refreshed(self, group_epoch: int) -> None:
        """Note that the topics were looked at, which made this the group epoch."""
        self._refreshed_epoch = group_epoch

    def request_metadata_refresh(self) -> None:
        """Ask for a look at the topics with the next heartbeat: one of them has changed."""
        self._refreshed_epoch = None

    # -- replay: see `replay_into` ------------------------------------------------------------------

    @abstractmethod
    def target_of_record(self, value: Any) -> T:
        """Return the target that a record holds."""

    @abstractmethod
    def value_of_target(self, target: T) -> Any:
        """Return the value of the record of a target."""

    @abstractmethod
    def member_added(self, member: M) -> None:
        """Count the member in."""

    @abstractmethod
    def member_removed(self, member: M) -> None:
        """Take back what the member stands for in the counts."""

    def update_member(self, member: M) -> None:
        """Add the member or replace its state."""
        old = self.members.get(member.member_id)
        self.members.put(member.member_id, member)
        if old is not None:
            self._take_out(old)
        self.member_added(member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        """Remove the member, which must be there."""
        self._take_out(self.members.pop(member_id))

    def _take_out(self, member: M) -> None:
        self.member_removed(member)
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)

    def update_epoch(self, value: Any) -> None:
        """Take the group epoch from its record."""
        self.group_epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def update_target_epoch(self, value: Any) -> None:
        """Take the epoch and the time of the target from its record; None if the record was deleted."""
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
        """Check the member; one in an older epoch may commit what it has had since then (KIP-1251)."""
        epoch = commit.generation_id_or_member_epoch
        # A commit from outside of the group, such as that of a tool.
        if epoch < 0 and not self.members:
            return None
        # A transaction that does not name the member.
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
        """Return whether the member uses the protocol of its group."""
        return True

    @abstractmethod
    def newer_commit(self, member: M, epoch: int) -> ApiError:
        """Return the error of a commit in an epoch that the member has not reached."""

    @abstractmethod
    def older_commit_check(self, member: M, epoch: int) -> CommitPartitionValidator:
        """Return a check of a partition: a member that has had it since may commit in that older epoch."""

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check the member's epoch; a request that names neither member nor epoch may fetch."""
        if member_id is None and member_epoch < 0:
            return
        if member_id is None:  # Kafka looks null up in a hash table, which fails
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        member = self.member(member_id)
        if member_epoch != member.member_epoch:
            raise self.fetch_in_other_epoch(member, member_epoch)

    @abstractmethod
    def fetch_in_other_epoch(self, member: M, epoch: int) -> ApiError:
        """Return the error of an offset fetch in another epoch than the member's."""

    def validate_offset_delete(self) -> None:
        """Allow it: topics that members subscribe to are refused one by one."""

    def validate_delete_group(self) -> None:
        """Check that it is empty: NON_EMPTY_GROUP."""
        if self.members:
            code = ErrorCode.NON_EMPTY_GROUP
            raise ApiError(code, ERROR_TEXTS[code])

    def target_record(self, member_id: str, target: T) -> GroupRecord:
        """Return the record of a member's target."""
        key = self.kind.key("TargetAssignmentMember", self.group_id, member_id)
        return GroupRecord(key, self.value_of_target(target))

    def tombstones(self) -> list[GroupRecord]:
        """Return the records that delete the group."""
        return group_tombstones(self.kind, self.group_id, self.members.in_order(), self.own_tombstones())

    def own_tombstones(self) -> Iterable[GroupRecord]:
        """Return the records that delete what only this kind of group stores."""
        return ()

    def describe(self) -> None:
        """Return that DescribeGroups, which is for classic groups, does not show it."""

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return that each offset's retention runs from its commit."""
        return OffsetExpiration(None)


class SubscribingMember(Member, Protocol):
    """A member that subscribes to topics."""

    @property
    def subscribed_topic_names(self) -> frozenset[str]:
        """The names of the topics that it subscribes to."""


S = TypeVar("S", bound=SubscribingMember)


class ModernGroup(AssignedGroup[S, Partitions], Generic[S]):
    """A group whose members subscribe to topics and are assigned partitions; mirrors `ModernGroup`."""

    no_target = NO_PARTITIONS
    regexes: Mapping[str, int]
    """Number of members that subscribe to each regular expression; without any in share groups."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.regexes = {}
        self.topics = TopicCounts()
        self.is_homogeneous = True
        """Whether all members subscribed to the same topics when one of them last changed."""

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Whether a member names the topic, or an expression matches it."""
        return topic in self.topics

    def depends_on(self, topics: AbstractSet[str]) -> bool:
        """Return whether one of these topics is subscribed to."""
        return not topics.isdisjoint(self.topics)

    def is_same_target(self, target: Partitions, other: Partitions) -> bool:
        """Return whether both have the same partitions, in whatever order."""
        return same_partitions(target, other)

    def topics_with(self, old: S, new: S) -> TopicCounts:
        """Return the topics that the group subscribes to once `new` has taken the place of `old`."""
        counts = self.topics.copied()
        counts.add_names(old.subscribed_topic_names, -1)
        counts.add_names(new.subscribed_topic_names, 1)
        return counts

    def topics_without(self, members: Iterable[S]) -> TopicCounts:
        """Return the topics that the group subscribes to without these members."""
        counts = self.topics.copied()
        for member in members:
            counts.add_names(member.subscribed_topic_names, -1)
        return counts

    def target_of_record(self, value: Any) -> Partitions:
        """Return the target that a record holds."""
        return target_from_record((topic.topic_id, topic.partitions) for topic in value.topic_partitions)

    def value_of_target(self, target: Partitions) -> Any:
        """Return the value of the record of a target."""
        value = self.kind.value_class("TargetAssignmentMember")
        return value([value.TopicPartition(topic, list(numbers)) for topic, numbers in target.items()])

    def update_member(self, member: S) -> None:
        """Add the member or replace its state."""
        super().update_member(member)
        self.is_homogeneous = is_homogeneous(self.regexes, self.topics, len(self.members))

    def remove_member(self, member_id: str) -> None:
        """Remove the member, which must be there."""
        super().remove_member(member_id)
        self.is_homogeneous = is_homogeneous(self.regexes, self.topics, len(self.members))

    def member_added(self, member: S) -> None:
        """Count the topics that the member subscribes to."""
        self.topics.add_names(member.subscribed_topic_names, 1)

    def member_removed(self, member: S) -> None:
        """Take back what the member stands for in the counts."""
        self.topics.add_names(member.subscribed_topic_names, -1)
