"""The share groups of one shard; mirrors the share groups' part of `GroupMetadataManager`.

An operation looks at a group and returns the records that change it. The runtime replays them into
the group, here and at every broker that loads the log later. A heartbeat does, in this order:
A. find the member, or make it
B. take over its subscription, and bump the group epoch if that, a topic, or what may be assigned has changed
C. compute a new target if the group epoch is ahead of it, at most once in the assignment interval
D. give the member its target
E. note which share partitions are to be initialized; they may be assigned once that is done
All records of it are written in one batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.keys import MemberKey
from broker_sim.group.modern.assigned_group import LEAVE_GROUP_EPOCH
from broker_sim.group.modern.assignment import NO_PARTITIONS
from broker_sim.group.modern.member_timers import RETRY_MS, DelayedShareMemberTimeout, MemberTimers
from broker_sim.group.records import group_id_of
from broker_sim.group.share import records
from broker_sim.group.share.describe import describe_group
from broker_sim.group.share.member import ShareMember
from broker_sim.group.share.replay import replay_into
from broker_sim.group.share.settings import ShareGroupSettings
from broker_sim.group.share.share_group import ShareGroup
from broker_sim.group.share.target_assignment import compute_target, subscribed_topic_ids
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from broker_sim.coordinator.result import ShardRuntime
    from broker_sim.group.environment import GroupEnvironment
    from broker_sim.group.group import Group
    from broker_sim.group.group_client import GroupClient
    from broker_sim.group.group_timeline import GroupTimeline
    from broker_sim.group.modern.assignment import Partitions
    from broker_sim.group.modern.metadata_hash import TopicHashes
    from broker_sim.group.modern.topic_counts import TopicCounts
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.share.state_partitions import Topics
    from broker_sim.metadata import MetadataImage

R = TypeVar("R")
Response = messages.ShareGroupHeartbeatResponse


class StateToInitialize(NamedTuple):
    """Share partitions whose state is to begin; the group epoch becomes its state epoch."""

    group_epoch: int
    topics: Topics


class HeartbeatAnswer(NamedTuple):
    """What a member is told, and what is to be done after that."""

    response: messages.ShareGroupHeartbeatResponse
    to_initialize: StateToInitialize | None = None


@dataclass(slots=True)
class _Change:
    """A member of a group before and after its request; each step adds its records."""

    group: ShareGroup
    member: ShareMember
    updated: ShareMember
    written: list[GroupRecord] = field(default_factory=list)


class ShareGroups:
    """Makes, keeps and replays the share groups of one partition."""

    def __init__(
        self, environment: GroupEnvironment, runtime: ShardRuntime, groups: GroupTimeline, hashes: TopicHashes
    ) -> None:
        """Serve the share groups among `groups`, which are those of the shard."""
        self.settings = ShareGroupSettings(environment)
        self._environment = environment
        self._runtime = runtime
        self._groups = groups
        self._hashes = hashes
        self._timers = MemberTimers(environment, DelayedShareMemberTimeout)

    def _now_ms(self) -> int:
        return self._environment.clock.wall_clock_ms()

    def _image(self) -> MetadataImage:
        return self._environment.image()

    # -- look-up --------------------------------------------------------------------------------

    def find(self, group_id: str) -> ShareGroup:
        """Return the group; `ApiError` GROUP_ID_NOT_FOUND."""
        return of_this_kind(group_id, self._groups.get(group_id))

    def find_or_make(self, group_id: str, *, makes: bool) -> ShareGroup:
        """Return the group; one that is new is not in the shard before its records are.

        Raises `ApiError` GROUP_ID_NOT_FOUND, also where there is a group of another kind.
        """
        group = self._groups.get(group_id)
        if group is None and makes:
            return ShareGroup(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return of_this_kind(group_id, group)

    def describe(self, group_id: str) -> messages.ShareGroupDescribeResponse.DescribedGroup:
        """Return what is known of a group of the committed view; `ApiError` GROUP_ID_NOT_FOUND."""
        group = of_this_kind(group_id, self._groups.committed(group_id))
        return describe_group(group, self._image())

    # -- the log --------------------------------------------------------------------------------

    def replay(self, record: GroupRecord) -> None:
        """Take in a record of a share group."""
        group_id = group_id_of(record)
        group = self._groups.get(group_id)
        if group is None and record.value is not None:
            group = ShareGroup(group_id)
            self._groups.put(group_id, group)
        if isinstance(group, ShareGroup) and replay_into(group, record, self._now_ms()):
            self._groups.remove(group_id)

    def on_loaded(self, group: ShareGroup) -> None:
        """Start the sessions of a group that was loaded from the log."""
        for member_id in group.members.in_order():
            self._keep_alive(group.group_id, group.members[member_id])

    def on_unloaded(self, group: ShareGroup) -> None:
        """Stop the sessions of a group."""
        for member_id in group.members:
            self._timers.end_all(MemberKey(group.group_id, member_id))

    # -- ShareGroupHeartbeat --------------------------------------------------------------------

    def heartbeat(self, request: messages.ShareGroupHeartbeatRequest, client: GroupClient) -> Result[HeartbeatAnswer]:
        """Serve a member.

        The request was checked (`check_heartbeat`). Raises `ApiError`: GROUP_ID_NOT_FOUND,
        GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
        """
        if request.member_epoch == LEAVE_GROUP_EPOCH:
            return self.leave(request.group_id, request.member_id)
        return self._stay(request, client)

    def leave(self, group_id: str, member_id: str) -> Result[HeartbeatAnswer]:
        """Remove a member. Raises `ApiError`: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID."""
        group = self.find(group_id)
        left = Response(member_id=member_id, member_epoch=LEAVE_GROUP_EPOCH)
        return self._fence(group, group.member(member_id), HeartbeatAnswer(left))

    def _stay(self, request: messages.ShareGroupHeartbeatRequest, client: GroupClient) -> Result[HeartbeatAnswer]:
        joins = request.member_epoch == 0
        group = self.find_or_make(request.group_id, makes=joins)
        self._check_capacity(group, request.member_id)
        member = group.members.get(request.member_id)
        if member is None:
            member = ShareMember(request.member_id) if joins else group.member(request.member_id)
        _check_epoch(member, request.member_epoch)
        names = request.subscribed_topic_names
        updated = replace(
            member if names is None else member.with_topic_names(names),
            rack_id=member.rack_id if request.rack_id is None else request.rack_id,
            client_id=client.client_id,
            client_host=client.client_host,
        )
        change = _Change(group, member, updated)
        bumped, group_epoch, topics, homogeneous = self._subscribe(change)
        epoch, target = self._target(change, group_epoch, homogeneous)
        updated = self._reconcile(change, epoch, target, subscription_changed=bumped)
        self._keep_alive(group.group_id, updated)
        response = Response(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms(group.group_id),
        )
        if joins or names is not None or updated.assigned != member.assigned:
            response.assignment = _assignment(updated)
        to_initialize = self._initialize(change, group_epoch, topics)
        return Result(HeartbeatAnswer(response, to_initialize), change.written)

    def _check_capacity(self, group: ShareGroup, member_id: str) -> None:
        max_size = self.settings.max_size
        if len(group.members) >= max_size and member_id not in group.members:
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {max_size} members.",
            )

    def _subscribe(self, change: _Change) -> tuple[bool, int, TopicCounts, bool]:
        """Do B: return whether the group epoch was bumped, the epoch, the topics, and homogeneity."""
        group, member, updated = change.group, change.member, change.updated
        bumps = False
        if updated != member:
            change.written.append(records.member_metadata(group.group_id, updated))
            bumps = updated.subscribed_topic_names != member.subscribed_topic_names
        group_epoch = group.group_epoch
        if group.assignment_epoch >= group_epoch:
            bumps = bumps or group.has_unassigned_state
        if not bumps and not group.has_metadata_expired:
            return False, group_epoch, group.topics, group.is_homogeneous
        topics = group.next_topics(member, updated)
        metadata_hash = self._hashes.of(topics, self._image())
        members = len(group.members) + (updated.member_id not in group.members)
        if bumps or metadata_hash != group.metadata_hash:
            bumps = True
            group_epoch += 1
            change.written.append(records.group_epoch(group.group_id, group_epoch, metadata_hash))
            self._environment.counters.share_group_rebalances += 1
        group.metadata_refreshed(group_epoch)
        return bumps, group_epoch, topics, group.is_homogeneous_with(topics, members)

    def _target(self, change: _Change, group_epoch: int, homogeneous: bool) -> tuple[int, Partitions]:
        """Do C: return the epoch of the target, and the member's."""
        group, member_id = change.group, change.updated.member_id
        now_ms = self._now_ms()
        interval_ms = self.settings.assignment_interval_ms(group.group_id)
        is_due = group.may_compute_target(interval_ms, now_ms)
        if group.assignment_epoch >= group_epoch or not is_due:
            return group.assignment_epoch, group.targets.get(member_id, NO_PARTITIONS)
        target, written = compute_target(
            group, change.updated, homogeneous=homogeneous, image=self._image(), group_epoch=group_epoch, now_ms=now_ms
        )
        change.written += written
        return group_epoch, target

    def _reconcile(self, change: _Change, epoch: int, target: Partitions, *, subscription_changed: bool) -> ShareMember:
        """Do D: return the member with its target."""
        member = change.updated
        if not subscription_changed and member.is_reconciled_to(epoch):
            return member
        subscribed = subscribed_topic_ids(member, self._image())
        after = member.towards(epoch, target, subscribed, subscription_changed=subscription_changed)
        if after != member:
            change.written.append(records.current_assignment(change.group.group_id, after))
        return after

    def _initialize(self, change: _Change, group_epoch: int, topics: TopicCounts) -> StateToInitialize | None:
        """Do E: return what is to be initialized, None if nothing is."""
        group, image = change.group, self._image()
        known, retry_ms = group.known_state, self.settings.initialize_retry_ms
        missing = known.missing(topics, image, self._now_ms(), retry_ms)
        if not missing:
            return None
        noted = known.with_initializing(missing)
        change.written.append(records.state_partitions(group.group_id, noted, image))
        return StateToInitialize(group_epoch, missing)

    # -- members that leave ---------------------------------------------------------------------

    def _fence(self, group: ShareGroup, member: ShareMember, response: R) -> Result[R]:
        """Remove the member; its session ends when the leader has the records."""
        written = records.member_tombstones(group.group_id, member.member_id)
        metadata_hash = self._hashes.of(group.next_topics(member, None), self._image())
        written.append(records.group_epoch(group.group_id, group.group_epoch + 1, metadata_hash))
        key = MemberKey(group.group_id, member.member_id)
        return Result(response, written, on_appended=lambda: self._timers.end_all(key))

    def _keep_alive(self, group_id: str, member: ShareMember, timeout_ms: int | None = None) -> None:
        """Begin the member's session anew; unless told it has the group's session timeout."""
        member_id = member.member_id
        key = MemberKey(group_id, member_id)
        if timeout_ms is None:
            timeout_ms = self.settings.session_timeout_ms(group_id)
        self._timers.keep_alive(
            key, timeout_ms, lambda: self._runtime.perform(lambda: self._expired(group_id, member_id)), member.client_id
        )

    def _expired(self, group_id: str, member_id: str) -> Result[None]:
        """Fence a member whose session is over, if it is still there."""
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup) or member_id not in group.members:
            return Result()
        member = group.members[member_id]

        def settled(error_code: ErrorCode) -> None:
            # Nobody waits for it, so it is tried again.
            if error_code and self._runtime.is_active and member_id in group.members:
                self._keep_alive(group_id, member, RETRY_MS)

        fenced: Result[None] = self._fence(group, member, None)
        fenced.on_settled = settled
        return fenced


def of_this_kind(group_id: str, group: Group | None) -> ShareGroup:
    """Return the group if it is a share group; `ApiError` GROUP_ID_NOT_FOUND."""
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ShareGroup):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    return group


def _check_epoch(member: ShareMember, received: int) -> None:
    """Raise `ApiError` FENCED_MEMBER_EPOCH unless the epoch is the member's, or the one before.

    The epoch before is right, too: then the answer with the new one was lost.
    """
    known, previous = member.member_epoch, member.previous_member_epoch
    if received in {0, known} or (received < known and received == previous):
        return
    if received > known:
        why = f"a greater member epoch ({received}) than the one known by the group coordinator ({known})"
    else:
        why = (
            f"a smaller member epoch ({received}) than the one known by the group coordinator ({known}),"
            f" and it does not match the previous member epoch ({previous})"
        )
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has {why}. The member must abandon all its partitions and rejoin.",
    )


def _assignment(member: ShareMember) -> messages.ShareGroupHeartbeatResponse.Assignment:
    return Response.Assignment(
        [Response.TopicPartitions(topic_id, list(numbers)) for topic_id, numbers in member.assigned_in_order]
    )
