"""Rebalances: the steps from one generation to the next; mirrors the rebalances of `GroupMetadataManager`.

A rebalance begins (A) when a member joins, changes, leaves or expires. Members learn of it from their
heartbeats and rejoin. The join phase ends (B) when all have joined or the rebalance timeout expires;
missing members are then removed, unless they are static. The leader gets the list of members, and its
SyncGroup brings the assignments (C), for which the SyncGroups of the other members wait.

The first generation of an empty group begins after `group.initial.rebalance.delay.ms` instead, which is
extended while members join, up to the rebalance timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.classic.classic_group import COMPLETING_REBALANCE, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from broker_sim.group.classic.classic_member import EMPTY_ASSIGNMENT
from broker_sim.group.classic.group_metadata import group_record
from broker_sim.group.classic.sessions import MemberSessions
from broker_sim.group.delayed_timeout import GroupKey
from broker_sim.protocol import messages
from broker_sim.runtime.delayed_request import DelayedRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.result import ShardRuntime
    from broker_sim.group.classic.classic_group import ClassicGroup
    from broker_sim.group.classic.classic_member import ClassicMember
    from broker_sim.group.metrics import GroupCounters
    from broker_sim.runtime.event_log import EventLogger


class DelayedSync(DelayedRequest):
    """Waits until all members of a generation have sent SyncGroup, or until the next rebalance.

    Mirrors `DelayedSync` of Kafka 3.
    After the rebalance timeout, `on_timeout(group, generation_id)` removes the members that have not.
    """

    __slots__ = ("_generation_id", "_group", "_on_timeout")

    api = "SyncGroup"

    def __init__(self, delay_ms: int, group: ClassicGroup, on_timeout: Callable[[ClassicGroup, int], object]) -> None:
        super().__init__(delay_ms)
        self._group = group
        self._generation_id = group.generation_id
        self._on_timeout = on_timeout

    def try_complete(self) -> bool:
        """Complete if all members have synced, or the generation is over."""
        group = self._group
        is_over = group.generation_id != self._generation_id or not group.pending_sync_members
        return is_over and self.force_complete()

    def on_expiration(self) -> None:
        """Remove the members that have not synced."""
        self._on_timeout(self._group, self._generation_id)

    def on_complete(self) -> None:
        """Do nothing: members are answered when the assignments are stored."""


JOIN_RETRY_BACKOFF_MS: Final = 500
"""Delay before a failed join phase is retried, the retry backoff of timers in Kafka's coordinator."""


class DelayedJoin(DelayedRequest):
    """Waits up to the rebalance timeout until all known members have joined; mirrors `DelayedJoin` of Kafka 3.

    Setting `is_over` completes it earlier, even if members are missing.

    Deliberate difference: since 4.0 Kafka uses a timer of its coordinator, with the same times. Here it is
    still a delayed operation, so that it can be observed like every other wait.
    """

    __slots__ = ("_group", "_phase", "is_over")

    api = "JoinGroup"

    def __init__(self, delay_ms: int, group: ClassicGroup, phase: Rebalance) -> None:
        super().__init__(delay_ms)
        self._group = group
        self._phase = phase
        self.is_over = False

    def try_complete(self) -> bool:
        """Complete once all members have joined."""
        return (self.is_over or self._group.has_all_members_joined) and self.force_complete()

    def on_expiration(self) -> None:
        """Do nothing: `on_complete` removes missing members."""

    def on_complete(self) -> None:
        """Begin the next generation, unless another operation has replaced this one."""
        if self._group.join_operation is self:
            self._phase.complete_join(self._group)


class InitialDelayedJoin(DelayedJoin):
    """Gives the first members of an empty group time to join; mirrors `InitialDelayedJoin`.

    It waits for its full delay, even if all known members have joined. If members have joined meanwhile,
    another wait follows while `remaining_ms` of the rebalance timeout are left.
    """

    __slots__ = ("remaining_ms",)

    def __init__(self, delay_ms: int, remaining_ms: int, group: ClassicGroup, phase: Rebalance) -> None:
        super().__init__(delay_ms, group, phase)
        self.remaining_ms = remaining_ms

    def try_complete(self) -> bool:
        """Complete only if `is_over` is set."""
        return self.is_over and self.force_complete()

    def on_complete(self) -> None:
        """Begin the next generation, or extend the wait."""
        if self._group.join_operation is not self:
            return
        if self.is_over:
            self._phase.complete_join(self._group)
        else:
            self._phase.extend_initial_join(self._group, self)


class RetriedJoin(InitialDelayedJoin):
    """Retries the end of a join phase whose members have no common protocol."""

    __slots__ = ()

    def __init__(self, group: ClassicGroup, phase: Rebalance) -> None:
        super().__init__(JOIN_RETRY_BACKOFF_MS, 0, group, phase)


def has_failed_since(group: ClassicGroup, old_operation: DelayedRequest | None) -> bool:
    """Whether a join phase has failed without a common protocol since `old_operation` was the join operation."""
    operation = group.join_operation
    return isinstance(operation, RetriedJoin) and operation is not old_operation


def join_response(
    group: ClassicGroup,
    member_id: str,
    *,
    with_members: bool,
    leader_id: str | None = None,
    skip_assignment: bool = False,
) -> messages.JoinGroupResponse:
    """Return the response for the current generation; `leader_id` of None means the group's leader."""
    response = messages.JoinGroupResponse
    members = []
    if with_members:
        members = [
            response.JoinGroupResponseMember(
                member.member_id, member.group_instance_id, member.metadata(group.protocol_name)
            )
            for member in group.members.values_in_order()
        ]
    return response(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type_or_none,
        protocol_name=group.protocol_name,
        leader=(group.leader_id or "") if leader_id is None else leader_id,
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def sync_response(group: ClassicGroup, member: ClassicMember) -> messages.SyncGroupResponse:
    """Return the response with the member's assignment."""
    return messages.SyncGroupResponse(
        protocol_type=group.protocol_type_or_none, protocol_name=group.protocol_name, assignment=member.assignment
    )


class Rebalance:
    """Runs the rebalances of a shard's classic groups, and owns their members' sessions."""

    def __init__(self, broker: BrokerContext, counters: GroupCounters, runtime: ShardRuntime, log: EventLogger) -> None:
        self._config = broker.config
        self._counters = counters
        self._runtime = runtime
        self._event_log = log
        self._purgatory = broker.purgatory("Rebalance")
        self.sessions = MemberSessions(broker.purgatory("Heartbeat"), self._expire_heartbeat)

    # -- loading and unloading groups -------------------------------------------------------------

    def start(self, group: ClassicGroup) -> None:
        """Start the sessions of a loaded group; one above `group.max.size` must rebalance."""
        self.start_sessions(group)
        if len(group.members) > self._config.group_max_size:
            self.prepare(group, "the group was loaded and is over capacity")

    def start_sessions(self, group: ClassicGroup) -> None:
        """Start the sessions of a group's members."""
        for member in group.members.values():
            self.sessions.begin(group, member)

    def stop(self, group: ClassicGroup) -> None:
        """Answer parked requests with NOT_COORDINATOR, and end all waits."""
        group.transition_to(DEAD)
        self.answer_all(group, ErrorCode.NOT_COORDINATOR)
        self.stop_waits(group)

    @staticmethod
    def answer_all(group: ClassicGroup, error_code: ErrorCode) -> None:
        """Answer all members' parked requests with that error."""
        for member in group.members.values():
            group.answer_error(member, error_code)

    def stop_waits(self, group: ClassicGroup) -> None:
        """End all operations of a group that is being dropped, without answers."""
        self.sessions.end_all(group)
        group.pending_sync_members.clear()
        operation, group.join_operation = group.join_operation, None
        if isinstance(operation, DelayedJoin):
            operation.is_over = True
        self._purgatory.check_and_complete(GroupKey(group.group_id))

    def _expire_heartbeat(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member or pending member whose session has expired."""
        member = group.members.get(member_id)
        if member_id in group.pending_join_members:
            group.remove(member_id)
            if group.state is PREPARING_REBALANCE and group.has_all_members_joined:
                self._end_join_phase(group)
        elif member is not None and not member.has_satisfied_heartbeat:
            self._log(group, "member failed, removing it", member=member_id)
            self.answer_unknown_member(group, member)
            group.remove(member_id)
            if group.state in {STABLE, COMPLETING_REBALANCE}:
                self.prepare(group, f"removing member {member_id} on heartbeat expiration")
            elif group.state is PREPARING_REBALANCE and group.has_all_members_joined:
                self._end_join_phase(group)

    @staticmethod
    def answer_unknown_member(group: ClassicGroup, member: ClassicMember) -> None:
        """Answer the parked join of a member that is being removed, so that it can rejoin."""
        group.answer_join(member, messages.JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))

    # -- A: a rebalance begins --------------------------------------------------------------------

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> None:
        """Begin a rebalance, or complete the current join phase if all members have joined."""
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.maybe_complete(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Begin a rebalance."""
        if group.state is COMPLETING_REBALANCE:
            self._reset_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync_members.clear()
        self._purgatory.check_and_complete(GroupKey(group.group_id))
        is_initial = group.state is EMPTY
        group.transition_to(PREPARING_REBALANCE)
        self._log(group, "preparing to rebalance", reason=reason)
        timeout_ms = group.rebalance_timeout_ms
        if is_initial:
            delay_ms = self._config.group_initial_rebalance_delay_ms
            remaining_ms = max(timeout_ms - delay_ms, 0)
            self._park(group, InitialDelayedJoin(delay_ms, remaining_ms, group, self))
        else:
            self._park(group, DelayedJoin(timeout_ms, group, self))

    def _park(self, group: ClassicGroup, operation: DelayedJoin) -> None:
        group.join_operation = operation
        self._purgatory.try_complete_else_watch(operation, [GroupKey(group.group_id)])

    # -- B: the join phase ends -------------------------------------------------------------------

    def maybe_complete(self, group: ClassicGroup) -> None:
        """Complete the join phase if all members have joined, unless it is the initial delay."""
        if group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY and group.has_all_members_joined:
            self._end_join_phase(group)

    def _end_join_phase(self, group: ClassicGroup) -> None:
        operation = group.join_operation
        assert isinstance(operation, DelayedJoin), "a group that prepares a rebalance waits for its members"
        operation.is_over = True
        self._purgatory.check_and_complete(GroupKey(group.group_id))

    def extend_initial_join(self, group: ClassicGroup, operation: InitialDelayedJoin) -> None:
        """Extend the wait if members have joined meanwhile and time is left, otherwise end the join phase."""
        remaining_ms = operation.remaining_ms
        if not group.new_member_added or remaining_ms == 0:
            self.complete_join(group)
            return
        group.new_member_added = False
        longest_ms = self._config.group_initial_rebalance_delay_ms
        self._park(
            group,
            InitialDelayedJoin(min(longest_ms, remaining_ms), max(remaining_ms - operation.delay_ms, 0), group, self),
        )

    def complete_join(self, group: ClassicGroup) -> None:
        """Begin the next generation with the members that have joined, and answer them."""
        self._runtime.perform(lambda: self._begin_generation(group))

    def _begin_generation(self, group: ClassicGroup) -> Result[None]:
        """Begin the next generation; return the record of a group that has become empty.

        Missing dynamic members are removed. If no member has joined but static members exist, the group waits
        for them once more. If members that name protocols twice have no common one, it retries later.
        """
        group.join_operation = None
        self._remove_missing_members(group)
        if group.members and not group.elect_joined_leader():
            self._log(group, "could not complete the rebalance: no members rejoined")
            self._park(group, DelayedJoin(group.rebalance_timeout_ms, group, self))
            return Result()
        try:
            group.init_next_generation()
        except ApiError:
            self._log(group, "could not complete the rebalance: no protocol in common")
            self._park(group, RetriedJoin(group, self))
            return Result()
        if not group.members:
            # If the record is lost, a new coordinator loads the previous generation, whose members then expire.
            self._log(group, "the group is now empty")
            return Result(records=[group_record(group, {})], replays=False)
        self._log(group, "stabilized", members=len(group.members))
        for member in group.members.values():
            is_leader = group.is_leader(member.member_id)
            response = join_response(group, member.member_id, with_members=is_leader)
            group.answer_join(member, response)
            self.sessions.begin(group, member)
            member.is_new = False
        group.pending_sync_members.update(group.members)
        group.sync_operation = DelayedSync(group.rebalance_timeout_ms, group, self._expire_sync)
        self._purgatory.try_complete_else_watch(group.sync_operation, [GroupKey(group.group_id)])
        return Result()

    def _remove_missing_members(self, group: ClassicGroup) -> None:
        missing = [member for member in group.members.values() if not member.is_awaiting_join and not member.is_static]
        for member in missing:
            group.remove(member.member_id)
            self.sessions.end(group, member)
        if missing:
            self._log(group, "removed members that have not rejoined", members=len(missing))

    # -- C: the assignments -----------------------------------------------------------------------

    def sync_received(self, group: ClassicGroup, member_id: str) -> None:
        """Stop waiting for that member's SyncGroup."""
        group.pending_sync_members.discard(member_id)
        if not group.pending_sync_members:
            self._purgatory.check_and_complete(GroupKey(group.group_id))

    def store_assignments(
        self, group: ClassicGroup, assignments: Mapping[str, bytes]
    ) -> Result[messages.SyncGroupResponse]:
        """Return the record of the leader's assignments; when it is committed, all members are answered."""
        generation_id = group.generation_id
        complete = {member_id: assignments.get(member_id, EMPTY_ASSIGNMENT) for member_id in group.members}

        def stored(error_code: ErrorCode) -> None:
            # Another rebalance or generation may have begun meanwhile.
            if group.state is not COMPLETING_REBALANCE or group.generation_id != generation_id:
                return
            if error_code:
                self._reset_assignments(group, error_code)
                self.prepare_or_complete(group, f"error {error_code.name} when storing assignments")
                return
            for member in group.members.values():
                member.assignment = complete.get(member.member_id, EMPTY_ASSIGNMENT)
            self._answer_syncs(group, ErrorCode.NONE)
            group.transition_to(STABLE)
            self._counters.classic_group_rebalances += 1

        record = group_record(group, complete)
        return Result(records=[record], replays=False, on_settled=stored)

    def _reset_assignments(self, group: ClassicGroup, error_code: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = EMPTY_ASSIGNMENT
        self._answer_syncs(group, error_code)

    def _answer_syncs(self, group: ClassicGroup, error_code: ErrorCode) -> None:
        for member in group.members.values():
            response = messages.SyncGroupResponse(error_code=error_code) if error_code else sync_response(group, member)
            if group.answer_sync(member, response):
                # Its session may have expired while the sync was parked, which was ignored.
                self.sessions.begin(group, member)

    def _expire_sync(self, group: ClassicGroup, generation_id: int) -> None:
        """Remove the members that have not sent SyncGroup in time."""
        missing = [member_id for member_id in group.members if member_id in group.pending_sync_members]
        if generation_id != group.generation_id or not missing:
            return
        for member_id in missing:
            member = group.members[member_id]
            group.remove(member_id)
            self.sessions.end(group, member)
        self.prepare(group, f"removing {len(missing)} members on pending sync request expiration")

    def _log(self, group: ClassicGroup, event: str, **values: object) -> None:
        log = self._event_log
        if log.is_enabled_for_info:
            log.info(event, group=group.group_id, generation=group.generation_id, **values)
