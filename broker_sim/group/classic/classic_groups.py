"""The classic groups of one shard; mirrors the classic half of `GroupMetadataManager`.

Members of the classic protocol in a consumer group are served by `ClassicMembers` instead.
A group's state in memory is ahead of its record: members join and leave without a record, which is written only
when a generation has its assignments or the group becomes empty. A new coordinator loads the last such
generation, and members learn of later changes from their heartbeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.classic.classic_group import COMPLETING_REBALANCE, PREPARING_REBALANCE, STABLE, ClassicGroup
from broker_sim.group.classic.group_metadata import group_record, restored_group
from broker_sim.group.classic.join import JoinRequest, Joins
from broker_sim.group.classic.rebalance import Rebalance, has_failed_since, sync_response
from broker_sim.group.group import UNKNOWN_MEMBER_ID
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.result import ShardRuntime
    from broker_sim.group.classic.classic_member import JoinResponder, SyncResponder
    from broker_sim.group.classic.join import JoinResult
    from broker_sim.group.group import Group, GroupClient
    from broker_sim.group.group_timeline import GroupTimeline
    from broker_sim.group.metrics import GroupCounters
    from broker_sim.group.records import GroupRecord
    from broker_sim.runtime.event_log import EventLogger

MemberIdentity = messages.LeaveGroupRequest.MemberIdentity
MemberResponse = messages.LeaveGroupResponse.MemberResponse


class ClassicGroups:
    """Creates and replays the classic groups of a shard, and serves their members."""

    def __init__(
        self,
        broker: BrokerContext,
        counters: GroupCounters,
        runtime: ShardRuntime,
        groups: GroupTimeline,
        log: EventLogger,
    ) -> None:
        """Serve the classic groups among `groups`, which are all groups of the shard."""
        self._clock = broker.clock
        self._groups = groups
        self.rebalance = Rebalance(broker, counters, runtime, log)
        self._joins = Joins(broker, self.rebalance)

    def get_or_create(self, group_id: str) -> Group:
        """Return the group with that id, of any type; create an empty classic group if there is none."""
        return self._groups.get(group_id) or self._create(group_id)

    def _create(self, group_id: str) -> ClassicGroup:
        group = ClassicGroup(group_id, self._clock)
        self._groups.put(group_id, group)
        return group

    def member_committed(self, group_id: str, member_id: str) -> None:
        """Extend the session of a member that has committed offsets."""
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup) and group.state in {STABLE, PREPARING_REBALANCE}:
            member = group.members.get(member_id)
            if member is not None:
                self.rebalance.sessions.begin(group, member)

    def replay(self, record: GroupRecord) -> None:
        """Apply a GroupMetadata record."""
        key, value = record.key, record.value
        assert isinstance(key, record_messages.GroupMetadataKey)
        old_group = self._groups.remove(key.group)
        if isinstance(old_group, ClassicGroup):
            self.rebalance.stop_waits(old_group)
        if value is not None:
            assert isinstance(value, record_messages.GroupMetadataValue)
            self._groups.put(key.group, restored_group(key.group, value, self._clock))

    # -- JoinGroup --------------------------------------------------------------------------------

    def join(self, message: messages.JoinGroupRequest, client: GroupClient, respond: JoinResponder) -> JoinResult:
        """Let a client join a group.

        If there is no classic group, a client without a member id creates it, replacing an empty group of
        another type if there is one.
        """
        request = JoinRequest(message, client, respond)
        group = self._groups.get(message.group_id)
        if isinstance(group, ClassicGroup):
            return self._joins.join(group, request)
        if message.member_id != UNKNOWN_MEMBER_ID:
            # As in Kafka, an empty group of another type is dropped until the shard is loaded again.
            self._groups.remove(message.group_id)
            return request.refuse(ErrorCode.UNKNOWN_MEMBER_ID, message.member_id)
        return self._create_with_member(message.group_id, group, request)

    def _create_with_member(self, group_id: str, replaced: Group | None, request: JoinRequest) -> JoinResult:
        """Create a group with its first member. `replaced` is an empty group of another type, if any."""
        records = [] if replaced is None else list(replaced.tombstones())
        group = self._create(group_id)
        records.append(group_record(group, {}))  # the state before the join: without members
        # Two places may answer: the join below, and `settled` if the group's record cannot be written.
        request.respond, fail = _once(request)
        self._joins.join(group, request)
        is_appended = False

        def appended() -> None:
            nonlocal is_appended
            is_appended = True

        def settled(error_code: ErrorCode) -> None:
            if not error_code:
                return
            if not is_appended and self._groups.get(group_id) is group:
                self._groups.revert(group_id)
                self.rebalance.stop_waits(group)
            fail(error_code)

        return Result(records=records, replays=False, on_appended=appended, on_settled=settled)

    # -- SyncGroup --------------------------------------------------------------------------------

    def sync(
        self, group: ClassicGroup, request: messages.SyncGroupRequest, respond: SyncResponder
    ) -> Result[messages.SyncGroupResponse]:
        """Answer with the member's assignment, now or when the leader has sent it.

        Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
        INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS.
        """
        member = group.validate_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        if _differs(request.protocol_type, group.protocol_type_or_none) or _differs(
            request.protocol_name, group.protocol_name
        ):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is PREPARING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        if group.state is COMPLETING_REBALANCE:
            member.respond_to_sync = respond
        self.rebalance.sync_received(group, member.member_id)
        if group.state is STABLE:
            respond(sync_response(group, member))
        elif group.is_leader(member.member_id):
            return self.rebalance.store_assignments(
                group,
                # Copies, because the request's bytes are views of its frame.
                {each.member_id: bytes(each.assignment) for each in request.assignments},
            )
        return Result()

    # -- Heartbeat --------------------------------------------------------------------------------

    def heartbeat(self, group: ClassicGroup, request: messages.HeartbeatRequest) -> Result[ErrorCode]:
        """Extend a member's session; return NONE, or REBALANCE_IN_PROGRESS if it must rejoin.

        Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
        """
        member = group.validate_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        self.rebalance.sessions.begin(group, member)
        if group.state is PREPARING_REBALANCE:
            return Result(ErrorCode.REBALANCE_IN_PROGRESS)
        return Result(ErrorCode.NONE)

    # -- LeaveGroup -------------------------------------------------------------------------------

    def leave(self, group: ClassicGroup, members: Iterable[MemberIdentity]) -> Result[list[MemberResponse]]:
        """Remove members by member id or group instance id; return the outcome of each.

        Raises `ApiError` UNKNOWN_SERVER_ERROR, after removing the members, if this completes a join phase of
        members without a common protocol.
        """
        old_operation = group.join_operation
        responses = [leave_response(member, self._leave_one(group, member)) for member in members]
        if any(not each.error_code for each in responses):
            if group.state in {STABLE, COMPLETING_REBALANCE}:
                self.rebalance.prepare_or_complete(group, "explicit `LeaveGroup` request")
            else:
                self.rebalance.maybe_complete(group)
        if has_failed_since(group, old_operation):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return Result(responses)

    def _leave_one(self, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if member_id == UNKNOWN_MEMBER_ID:  # an administrator removes a static member
            if instance_id is None or instance_id not in group.static_members:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = group.static_members[instance_id]
        elif member_id in group.pending_join_members:
            self.rebalance.sessions.end_pending(group, member_id)
            return ErrorCode.NONE
        try:
            member = group.validate_member(member_id, instance_id)
        except ApiError as error:
            return error.error_code
        self.rebalance.sessions.end(group, member)
        self.rebalance.answer_unknown_member(group, member)
        group.remove(member_id)
        return ErrorCode.NONE


def leave_response(identity: MemberIdentity, error_code: ErrorCode) -> MemberResponse:
    """Return the outcome for one leaving member."""
    return MemberResponse(identity.member_id, identity.group_instance_id, error_code)


def _differs(requested: str | None, current: str | None) -> bool:
    return requested is not None and current is not None and requested != current


def _once(request: JoinRequest) -> tuple[JoinResponder, Callable[[ErrorCode], None]]:
    """Return a function that answers the request, and one that answers it with an error.

    Only the first call of either has an effect.
    """
    respond = request.respond
    is_answered = False

    def answer(response: messages.JoinGroupResponse) -> None:
        nonlocal is_answered
        if not is_answered:
            is_answered = True
            respond(response)

    def fail(error_code: ErrorCode) -> None:
        answer(messages.JoinGroupResponse(error_code=error_code))

    return answer, fail
