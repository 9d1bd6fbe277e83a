"""The groups of one kind in one shard: the shared algorithm of consumer, share and streams groups.

Mirrors the common part of `GroupMetadataManager` and `TargetAssignmentBuilder`. An operation reads a group and
returns the records that change it. The runtime replays them into the group, here and on every broker that loads
the log later. A heartbeat has these steps:

A. find or create the group and the member, and update the member from the request
B. bump the group epoch if the member, a topic or a configuration has changed
C. compute a new target if the group epoch is ahead of it, at most once per assignment interval
D. reconcile the member with its target by one step

All its records are written in one batch. The parts of the steps that are specific to a kind are in its folder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.delayed_timeout import MemberKey
from broker_sim.group.group import CLASSIC
from broker_sim.group.modern.assigned_group import JOIN_GROUP_EPOCH, AssignedGroup, Member
from broker_sim.group.modern.assignment import AssignorError, is_homogeneous
from broker_sim.group.modern.member_timers import RETRY_MS, MemberTimers, Wait
from broker_sim.group.modern.records import epoch_record, target_epoch_record
from broker_sim.group.modern.settings import GroupSettings
from broker_sim.group.records import GroupRecord, group_id_of
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable
from broker_sim.protocol.uuids import uuid_text, version_4

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Collection, Mapping, Sequence

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.result import ShardRuntime
    from broker_sim.group.group import Group, GroupClient
    from broker_sim.group.group_timeline import GroupTimeline
    from broker_sim.group.metrics import GroupCounters
    from broker_sim.group.modern.assigned_group import ModernGroup
    from broker_sim.group.modern.assignment import TopicCounts
    from broker_sim.group.modern.metadata_hash import TopicHashes
    from broker_sim.metadata import MetadataImage
    from broker_sim.runtime.event_log import EventLogger


class HeartbeatRequest(Protocol):
    """The fields common to the heartbeats of all kinds."""

    @property
    def group_id(self) -> str:
        """The group id."""

    @property
    def member_id(self) -> str:
        """The member id."""

    @property
    def member_epoch(self) -> int:
        """The member epoch; 0 joins, and a negative one leaves."""


G = TypeVar("G", bound=AssignedGroup[Any, Any])
M = TypeVar("M", bound=Member)
T = TypeVar("T")
S = TypeVar("S")
V = TypeVar("V")
R = TypeVar("R")
Request = TypeVar("Request", bound=HeartbeatRequest)
Answer = TypeVar("Answer")


class ShardParts(NamedTuple):
    """The services shared by all kinds of groups in one shard; `groups` has all its groups by id."""

    broker: BrokerContext
    counters: GroupCounters
    runtime: ShardRuntime
    groups: GroupTimeline
    hashes: TopicHashes
    log: EventLogger


@dataclass(frozen=True, slots=True)
class MemberChange(Generic[G, M, R]):
    """The outcome of step A: a member before and after its request."""

    group: G
    member: M
    updated: M
    client: GroupClient
    report: R
    """Data from the request that step D needs: the partitions that the member owns, or the complete request."""


class Subscription(NamedTuple):
    """The outcome of step B."""

    group_epoch: int
    records: Sequence[GroupRecord] = ()
    has_changed: bool = False
    """Whether the member's subscription has changed: unsubscribed topics are then revoked at once."""
    topics: Collection[str] = ()
    is_homogeneous: bool = True
    """Whether all members subscribe to the same topics."""
    is_refined: bool = False
    """Whether the epoch was bumped only because a member of a stable streams group lacks tasks of its target."""


@dataclass(frozen=True, slots=True)
class Step(Generic[M]):
    """The outcome of steps B to D: the updated member, and all records."""

    member: M
    subscription: Subscription
    records: list[GroupRecord] = field(default_factory=list)


class AssignedGroups(ABC, Generic[G, M, T, Request, Answer]):
    """Creates, updates and replays the groups `G` of one shard, with members `M` and targets `T`."""

    group_class: ClassVar[type[Any]]

    def __init__(self, parts: ShardParts) -> None:
        self.parts = parts
        self.kind = self.group_class.kind
        self.settings = GroupSettings(parts.broker, self.kind)
        self.is_4_4 = parts.broker.release.is_at_least("4.4")
        """Whether the broker's release is Kafka 4.4 or newer."""
        self.timers = MemberTimers(parts.broker, f"{self.kind.prefix}Heartbeat")

    def image(self) -> MetadataImage:
        """Return the newest metadata image."""
        return self.parts.broker.image()

    def now_ms(self) -> int:
        """Return the wall-clock time."""
        return self.parts.broker.clock.wall_clock_ms()

    # -- look-up --------------------------------------------------------------------------------

    def find(self, group_id: str) -> G:
        """Return the group. Raises `ApiError` GROUP_ID_NOT_FOUND."""
        return self._of_this_kind(group_id, self.parts.groups.get(group_id))

    def find_committed(self, group_id: str) -> G:
        """Return the group in the committed view. Raises `ApiError` GROUP_ID_NOT_FOUND."""
        return self._of_this_kind(group_id, self.parts.groups.committed(group_id))

    def _of_this_kind(self, group_id: str, group: Group | None) -> G:
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not self.is_own(group):
            raise self.kind.of_another_kind(group_id)
        own: Any = group
        return own  # type: ignore[no-any-return]

    def is_own(self, group: Group | None) -> bool:
        """Return whether the group exists and is of this kind."""
        return isinstance(group, self.group_class)

    def find_or_create(self, group_id: str, *, creates: bool) -> tuple[G, list[GroupRecord]]:
        """Return the group, and the tombstones of an empty classic group with the same id.

        A new group is added to the shard only when its records are replayed. Raises `ApiError` GROUP_ID_NOT_FOUND,
        also for a group of another kind.
        """
        group = self.parts.groups.get(group_id)
        if group is None:
            if not creates:
                raise self.kind.not_found(group_id)
            return self.group_class(group_id), []
        if creates and self.kind.replaces_classic and group.group_type == CLASSIC and group.is_empty:
            return self.group_class(group_id), list(group.tombstones())
        return self.find(group_id), []

    # -- the log --------------------------------------------------------------------------------

    def replay(self, record: GroupRecord) -> None:
        """Apply a record of a group of this kind; mirrors `getOrMaybeCreatePersistedConsumerGroup`.

        Does nothing for a tombstone without a group, and if a group of another kind has the id.
        """
        group_id, groups = group_id_of(record), self.parts.groups
        group: Any = groups.get(group_id)
        if not self.is_own(group):
            # A simple group, which only has offsets, is replaced.
            may_replace = group is None or (self.kind.replaces_classic and group.is_empty)
            if record.value is None or not may_replace:
                return
            group = self.group_class(group_id)
            groups.put(group_id, group)
        if replay_into(group, record, self.replay_own):
            groups.remove(group_id)
            self.removed(group_id)

    def replay_own(self, group: G, key: Any, value: Any) -> None:
        """Apply a record of a type that only this kind has."""
        raise NotImplementedError(type(key).__name__)

    def removed(self, group_id: str) -> None:
        """Clean up after a group that was removed."""

    def on_loaded(self, group: G) -> None:
        """Start the timers of a group that was loaded from the log."""
        for member_id in group.members.in_order():
            member = group.members[member_id]
            self.keep_alive(group.group_id, member)
            if member.is_revoking:
                self.begin_revocation_timeout(group.group_id, member)

    def on_unloaded(self, group: G) -> None:
        """Stop the timers of a group."""
        for member_id in group.members:
            self.timers.end_all(MemberKey(group.group_id, member_id))

    # -- heartbeats -----------------------------------------------------------------------------

    def heartbeat(self, request: Request, client: GroupClient) -> Result[Answer]:
        """Serve a heartbeat, which is validated already (`check_heartbeat`).

        Raises `ApiError`: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH,
        UNKNOWN_SERVER_ERROR, and the errors of the kind's steps.
        """
        joins = request.member_epoch == JOIN_GROUP_EPOCH
        if request.member_epoch < JOIN_GROUP_EPOCH:
            return self.leave_by_heartbeat(request)
        group, removal = self.find_or_create(request.group_id, creates=joins)  # A
        instance_id: str | None = getattr(request, "instance_id", None)  # not in heartbeats of share groups
        self.check_capacity(group, request.member_id, instance_id, joins=joins)
        change, replacement = self.update_from_request(group, request, client)
        step = self.update(change)  # B to D
        self.keep_alive(group.group_id, step.member)
        answer, own = self.answer(change, request, step)
        return Result(answer, [*removal, *replacement, *step.records, *own])

    def check_capacity(self, group: G, member_id: str, instance_id: str | None, *, joins: bool) -> None:
        """Raise `ApiError` GROUP_MAX_SIZE_REACHED if the member would exceed the group's maximum size."""
        max_size = self.settings.max_size
        if len(group.members) >= max_size and self.needs_room(group, member_id, instance_id, joins=joins):
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The {self.kind.name} group has reached its maximum capacity of {max_size} members.",
            )

    def needs_room(self, group: G, member_id: str, instance_id: str | None, *, joins: bool) -> bool:  # noqa: ARG002
        """Return whether the member counts as new; before Kafka 4.4 a returning static member does."""
        is_returning = self.is_4_4 and group.static_member_id(instance_id) is not None
        return member_id not in group.members and not is_returning

    def check_epoch(self, member: M, received: int, *, lost_response: bool, hint: str = "") -> None:
        """Raise `ApiError` FENCED_MEMBER_EPOCH unless the epoch is the member's current one, or 0.

        The previous epoch is also valid if the member may have lost the response with its new epoch.
        """
        current = member.member_epoch
        if received in {JOIN_GROUP_EPOCH, current}:
            return
        if received < current and received == member.previous_member_epoch and lost_response:
            return
        compared, hint = ("greater", "") if received > current else ("smaller", hint)
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The {self.kind.name} group member has a {compared} member epoch ({received}) than the one known by "
            f"the group coordinator ({current}){hint}. The member must abandon all its partitions and rejoin.",
        )

    @abstractmethod
    def update_from_request(
        self, group: G, request: Request, client: GroupClient
    ) -> tuple[MemberChange[G, M, Any], list[GroupRecord]]:
        """Run step A: return the member before and after its request, and records that replace a static member by it.

        Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
        """

    def update(self, change: MemberChange[G, M, Any]) -> Step[M]:
        """Run steps B to D."""
        subscription = self.subscribe(change)
        epoch, target, targets = self.target_step(change.group, change.updated, subscription)
        member, steps = self.reconcile(change, epoch, target, has_changed=subscription.has_changed)
        return Step(member, subscription, [*subscription.records, *targets, *steps])

    @abstractmethod
    def subscribe(self, change: MemberChange[G, M, Any]) -> Subscription:
        """Run step B."""

    def refresh(
        self,
        group: ModernGroup[Any],
        topics: TopicCounts,
        *,
        regexes: Mapping[str, int],
        size: int,
        bumps: bool,
    ) -> Subscription:
        """Return the outcome of step B for a group with topic subscriptions.

        The group epoch is bumped if `bumps` is set or one of the topics has changed. `topics`, `regexes` and `size`
        (number of members) describe the group after the change.
        """
        records = []
        group_epoch = group.group_epoch
        metadata_hash = self.parts.hashes.of(topics, self.image())
        if bumps or metadata_hash != group.metadata_hash:
            group_epoch += 1
            records.append(epoch_record(self.kind, group.group_id, group_epoch, metadata_hash))
            self.parts.counters.count_rebalance(self.kind.name)
        group.metadata_refreshed(group_epoch)
        homogeneous = is_homogeneous(regexes, topics, size)
        return Subscription(group_epoch, records, topics=topics, is_homogeneous=homogeneous)

    def may_compute_target(self, group: G) -> bool:
        """Return whether the assignment interval since the last target has elapsed."""
        return group.may_compute_target(self.settings.assignment_interval_ms(group.group_id), self.now_ms())

    def target_step(self, group: G, updated: M, subscription: Subscription) -> tuple[int, T, list[GroupRecord]]:
        """Run step C: return the target's epoch, the member's target, and the records of a new target."""
        if not self.is_target_due(group, subscription.group_epoch):
            return group.assignment_epoch, self.last_target(group, updated), []
        try:
            target, records = self.compute_target(group, updated, subscription)
        except AssignorError as error:
            text = f"Failed to compute a new target assignment for epoch {subscription.group_epoch}: {error}"
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error
        return subscription.group_epoch, target, records

    def is_target_due(self, group: G, group_epoch: int) -> bool:
        """Return whether a target must be computed for that epoch now."""
        return group.assignment_epoch < group_epoch and self.may_compute_target(group)

    def last_target(self, group: G, member: M) -> T:
        """Return the member's current target, used while no new one is computed."""
        target: T = group.target_of(member)
        return target

    def compute_target(self, group: G, updated: M | None, subscription: Subscription) -> tuple[T, list[GroupRecord]]:
        """Return the new target of the member `updated`, and the records of all changed targets.

        `updated` may be new to the group; if it is None, the first result is an empty target. Raises `AssignorError`.
        """
        targets = self.assign(group, updated, subscription)
        current = dict(group.targets)
        if updated is not None and self.is_4_4:  # older releases write the target of a replaced static member twice
            replaced_id = group.replaced_id(updated)
            if replaced_id is not None and replaced_id in current:
                current[updated.member_id] = current.pop(replaced_id)
        records = [
            group.target_record(member_id, target)
            for member_id, target in targets.items()
            if member_id not in current or not group.is_same_target(target, current[member_id])
        ]
        records.append(target_epoch_record(self.kind, group.group_id, subscription.group_epoch, self.now_ms()))
        own: T = group.no_target if updated is None else targets[updated.member_id]
        return own, records

    @abstractmethod
    def assign(self, group: G, updated: M | None, subscription: Subscription) -> dict[str, T]:
        """Return the new targets of all members, in the order of Kafka's table. Raises `AssignorError`."""

    def member_specs(self, group: G, updated: M | None, spec: Callable[[M, T], S]) -> dict[str, S]:
        """Return the assignor's input for each member, including the updated one, in the order of Kafka's table.

        `updated` may be new to the group; it replaces a static member and gets its target. As in Kafka, the replaced
        member is removed from the table after all are added, or from 4.4 on is not added.
        """
        replaced_id = None if updated is None else group.replaced_id(updated)
        specs: HashTable[str, S] = HashTable(string_hash)
        for member_id in group.members.in_order():
            if member_id != replaced_id or not self.is_4_4:
                specs.put(member_id, spec(group.members[member_id], group.targets.get(member_id, group.no_target)))
        if updated is not None:
            target_id = updated.member_id if replaced_id is None else replaced_id
            specs.put(updated.member_id, spec(updated, group.targets.get(target_id, group.no_target)))
        if replaced_id is not None:
            specs.pop(replaced_id, None)
        return {member_id: specs[member_id] for member_id in specs.in_order()}

    def reconcile(
        self, change: MemberChange[G, M, Any], epoch: int, target: T, *, has_changed: bool
    ) -> tuple[M, list[GroupRecord]]:
        """Run step D: return the member after its next step and its record; start a revocation timeout if needed."""
        group_id, member = change.group.group_id, change.updated
        if not has_changed and member.is_reconciled_to(epoch):
            return member, []
        reconciled = self.next_step(change, epoch, target, has_changed=has_changed)
        if reconciled == member:
            return reconciled, []
        self.update_revocation_timeout(group_id, reconciled)
        return reconciled, [self.assignment_record(group_id, reconciled)]

    @abstractmethod
    def next_step(self, change: MemberChange[G, M, Any], epoch: int, target: T, *, has_changed: bool) -> M:
        """Return the member after its next step towards the target; the same object if there is none."""

    def changed_member(self, change: MemberChange[G, M, Any]) -> list[GroupRecord]:
        """Return the record of the member's subscription if its request has changed the member."""
        if change.updated == change.member:
            return []
        return [self.member_record(change.group.group_id, change.updated)]

    @abstractmethod
    def member_record(self, group_id: str, member: M) -> GroupRecord:
        """Return the record of a member's subscription."""

    @abstractmethod
    def assignment_record(self, group_id: str, member: M) -> GroupRecord:
        """Return the record of a member's epoch and assignment."""

    @abstractmethod
    def answer(
        self, change: MemberChange[G, M, Any], request: Request, step: Step[M]
    ) -> tuple[Answer, list[GroupRecord]]:
        """Return the response, and additional records specific to the kind."""

    # -- leaving members ------------------------------------------------------------------------

    @abstractmethod
    def leave_by_heartbeat(self, request: Request) -> Result[Answer]:
        """Serve a member that leaves, which has a negative epoch."""

    def fence(self, group: G, members: Sequence[M], response: R) -> Result[R]:
        """Remove the members; their timers are cancelled when the leader has the records."""
        if not members:
            return Result(response)

        def appended() -> None:
            for member in members:
                self.timers.end_all(MemberKey(group.group_id, member.member_id))

        removal = self.removal(group, members)
        if len(members) == len(group.members) and self.is_4_4:
            # Before 4.4 the target epoch of a group without members is not changed.
            removal.append(target_epoch_record(self.kind, group.group_id, group.group_epoch + 1, 0))
        return Result(response, removal, on_appended=appended)

    def rebalance(self, group_id: str) -> Result[ErrorCode]:
        """Bump the group's epoch, so that the next heartbeat computes a new target for all members."""
        group = self.find(group_id)
        self.parts.counters.count_rebalance(self.kind.name)
        return Result(ErrorCode.NONE, [self.next_epoch(group)])

    def next_epoch(self, group: G) -> GroupRecord:
        """Return the record that bumps the group epoch without any other change."""
        return epoch_record(self.kind, group.group_id, group.group_epoch + 1, group.metadata_hash)

    @abstractmethod
    def removal(self, group: G, members: Sequence[M]) -> list[GroupRecord]:
        """Return the records that remove the members."""

    def keep_alive(self, group_id: str, member: M, timeout_ms: int | None = None) -> None:
        """Start or restart the member's session; `timeout_ms` defaults to the group's session timeout."""
        member_id = member.member_id
        if timeout_ms is None:
            timeout_ms = self.settings.session_timeout_ms(group_id)
        key = MemberKey(group_id, member_id)
        self.timers.keep_alive(key, timeout_ms, lambda: self.expire(group_id, member_id), member.client_id)

    def update_revocation_timeout(self, group_id: str, member: M) -> None:
        """Start the revocation timeout of a member that must revoke; cancel it otherwise."""
        if member.is_revoking:
            self.begin_revocation_timeout(group_id, member)
        else:
            self.timers.end(Wait.REVOCATION, MemberKey(group_id, member.member_id))

    def begin_revocation_timeout(self, group_id: str, member: M) -> None:
        """Fence the member if its epoch is still the same after its rebalance timeout."""
        member_id, epoch = member.member_id, member.member_epoch
        self.timers.begin(
            Wait.REVOCATION,
            MemberKey(group_id, member_id),
            member.rebalance_timeout_ms,
            lambda: self.expire(group_id, member_id, epoch),
            member.client_id,
        )

    def expire(self, group_id: str, member_id: str, epoch: int | None = None) -> None:
        """Fence a member after a timeout, if it is still in the group, and in `epoch` unless that is None."""
        self.parts.runtime.perform(lambda: self._expired(group_id, member_id, epoch))

    def _expired(self, group_id: str, member_id: str, epoch: int | None) -> Result[None]:
        group: Any = self.parts.groups.get(group_id)
        if not self.is_own(group) or member_id not in group.members:
            return Result()
        member = group.members[member_id]
        if epoch is not None and member.member_epoch != epoch:
            return Result()

        def settled(error_code: ErrorCode) -> None:
            # No client waits for the result, so it is retried.
            if error_code and self.parts.runtime.is_active and member_id in group.members:
                self.keep_alive(group_id, member, RETRY_MS)

        try:
            fenced: Result[None] = self.fence(group, [member], None)
        except ApiError as error:
            self.parts.log.info("could not fence", group=group_id, member=member_id, reason=error.error_message)
            return Result()
        fenced.on_settled = settled
        return fenced


def newer(new: V | None, current: V) -> V:
    """Return the value in a request, or the member's current one if the request does not have it."""
    return current if new is None else new


def new_member_id(rng: random.Random) -> str:
    """Return a member id like Kafka's: a random UUID in base 64 that does not begin with a dash."""
    while True:
        text = uuid_text(version_4(rng.getrandbits(128).to_bytes(16, "big")))
        if not text.startswith("-"):
            return text


def replay_into(
    group: AssignedGroup[Any, Any], record: GroupRecord, replay_own: Callable[[Any, Any, Any], object]
) -> bool:
    """Apply a record to an existing group; return whether the group is removed.

    `replay_own(group, key, value)` applies record types that only this kind of group has.
    """
    key: Any = record.key
    value: Any = record.value
    record_type = type(key).__name__.removeprefix(group.kind.prefix)
    if record_type == "MetadataKey":
        if value is None:
            return True
        group.update_epoch(value)
    elif record_type == "TargetAssignmentMetadataKey":
        group.update_target_epoch(value)
    elif not _replay_of_member(group, record_type, key, value):
        replay_own(group, key, value)
    return False


def _replay_of_member(group: AssignedGroup[Any, Any], record_type: str, key: Any, value: Any) -> bool:
    """Apply a record of one member; return False if it is not a member's record."""
    if record_type == "TargetAssignmentMemberKey":
        if value is None:
            group.remove_target(key.member_id)
        else:
            group.update_target(key.member_id, group.target_of_record(value))
        return True
    if record_type not in {"MemberMetadataKey", "CurrentMemberAssignmentKey"}:
        return False
    is_metadata = record_type == "MemberMetadataKey"
    if value is not None:
        member = group.member_or_new(key.member_id)
        group.update_member(member.with_metadata(value) if is_metadata else member.with_assignment(value))
    elif key.member_id in group.members:
        if is_metadata:
            group.remove_member(key.member_id)
        else:
            group.update_member(group.members[key.member_id].without_assignment())
    return True
