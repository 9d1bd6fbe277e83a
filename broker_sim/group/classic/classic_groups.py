"""The classic groups of one shard; mirrors the classic half of `GroupMetadataManager`.

A member of the classic protocol may be in a group of the other kind; then that kind serves it.
A group's state in memory is ahead of its record: members come and go without one, and a record is
written when a generation has its assignments, or when a group becomes empty. A new coordinator knows
the last such generation, and its members find out from their heartbeats what has changed since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.classic.classic_group import ClassicGroup
from broker_sim.group.classic.classic_group_state import ClassicGroupState
from broker_sim.group.classic.group_metadata import empty_group_record, restored_group
from broker_sim.group.classic.join import UNKNOWN_MEMBER_ID, JoinRequest, Joins
from broker_sim.group.classic.rebalance import Rebalance
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.group.classic.classic_member import JoinResponder, SyncResponder
    from broker_sim.group.group import Group
    from broker_sim.group.group_client import GroupClient
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.shard import GroupShard
    from broker_sim.metadata import ImageChanges, MetadataImage

__all__ = ["ClassicGroups"]

EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState
MemberIdentity = messages.LeaveGroupRequest.MemberIdentity
MemberResponse = messages.LeaveGroupResponse.MemberResponse


class ClassicGroups:
    """Makes, keeps and replays the classic groups of a shard, and serves their members."""

    def __init__(self, shard: GroupShard) -> None:
        self._shard = shard
        self.rebalance = Rebalance(shard)
        self._joins = Joins(shard, self.rebalance)

    def get_or_create(self, group_id: str) -> Group:
        """Return the group of that id, of any kind; a new one is classic and empty."""
        return self._shard.groups.get(group_id) or self._create(group_id)

    def _create(self, group_id: str) -> ClassicGroup:
        group = ClassicGroup(group_id, self._shard.environment.clock, self.rebalance)
        self._shard.groups[group_id] = group
        return group

    def _find(self, group_id: str) -> Group:
        """Return the group, of any kind. Raises UNKNOWN_MEMBER_ID: who is in no group is no member."""
        group = self._shard.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
        return group

    def replay(self, record: GroupRecord) -> None:
        """Take in a GroupMetadata record."""
        key, value = record.key, record.value
        assert isinstance(key, record_messages.GroupMetadataKey)
        before = self._shard.groups.pop(key.group, None)
        if isinstance(before, ClassicGroup):
            self.rebalance.stop_waits(before)
        if value is not None:
            assert isinstance(value, record_messages.GroupMetadataValue)
            self._shard.groups[key.group] = restored_group(
                key.group, value, self._shard.environment.clock, self.rebalance
            )

    def on_image(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Do nothing: the members watch the metadata of their topics themselves."""

    # -- JoinGroup --------------------------------------------------------------------------------

    def join(
        self, message: messages.JoinGroupRequest, client: GroupClient, respond: JoinResponder
    ) -> None:
        """Let somebody into a group; one without an id may found it."""
        request = JoinRequest(message, client, respond)
        group = self._shard.groups.get(message.group_id)
        if isinstance(group, ClassicGroup):
            self._joins.join(group, request)
        elif group is not None and not group.is_empty:
            try:
                self._shard.consumer.classic_members.join(message, client, respond)
            except ApiError as error:
                request.refuse(error.error_code)
        elif message.member_id != UNKNOWN_MEMBER_ID:
            # Kafka forgets an empty group of another kind then, until it is loaded again.
            self._shard.groups.pop(message.group_id, None)
            request.refuse(ErrorCode.UNKNOWN_MEMBER_ID, message.member_id)
        else:
            self._found(message.group_id, group, request)

    def _found(self, group_id: str, replaced: Group | None, request: JoinRequest) -> None:
        """Make a group with its first member; it takes the place of an empty one of another kind."""
        records = [] if replaced is None else list(replaced.tombstones())
        group = self._create(group_id)
        request.respond, fail = _once(request)
        self._joins.join(group, request)
        is_written = False

        def written(error_code: ErrorCode) -> None:
            if error_code:
                if not is_written and self._shard.groups.get(group_id) is group:
                    del self._shard.groups[group_id]
                    self.rebalance.stop_waits(group)
                fail(error_code)

        self._shard.write([*records, empty_group_record(group)], written, replay=False)
        is_written = True

    # -- SyncGroup --------------------------------------------------------------------------------

    def sync(self, request: messages.SyncGroupRequest, respond: SyncResponder) -> None:
        """Answer with the member's assignment, now or when the leader has brought it.

        Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
        INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS.
        """
        group = self._find(request.group_id)
        if group.is_empty:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not isinstance(group, ClassicGroup):
            self._shard.consumer.classic_members.sync(request, respond)
            return
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
            respond(
                messages.SyncGroupResponse(
                    protocol_type=group.protocol_type_or_none,
                    protocol_name=group.protocol_name,
                    assignment=member.assignment,
                )
            )
        elif group.is_leader(member.member_id):
            self.rebalance.store_assignments(
                group,
                # Copies: the bytes of a request are parts of the frame that they came in.
                {each.member_id: bytes(each.assignment) for each in request.assignments},
            )

    # -- Heartbeat --------------------------------------------------------------------------------

    def heartbeat(self, request: messages.HeartbeatRequest) -> ErrorCode:
        """Keep a member's session alive; return NONE, or REBALANCE_IN_PROGRESS if it should join.

        Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
        """
        group = self._find(request.group_id)
        if not isinstance(group, ClassicGroup):
            return self._shard.consumer.classic_members.heartbeat(request)
        member = group.validate_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        self.rebalance.sessions.begin(group, member)
        if group.state is PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    # -- LeaveGroup -------------------------------------------------------------------------------

    def leave(
        self,
        group_id: str,
        members: list[MemberIdentity],
        on_done: Callable[[list[MemberResponse], ErrorCode], object],
    ) -> None:
        """Remove members, each by its id or by its group instance id.

        Tells what became of each when all that was written is committed, or the error of writing.
        """
        group = self._shard.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            left = self._leave(group, members)
        elif group is not None:
            self._shard.consumer.classic_members.leave(group_id, members, on_done)
            return
        else:
            left = [_left(member, ErrorCode.UNKNOWN_MEMBER_ID) for member in members]
        self._shard.write([], lambda failure: on_done(left, failure))

    def _leave(self, group: ClassicGroup, members: list[MemberIdentity]) -> list[MemberResponse]:
        left = [_left(member, self._leave_one(group, member)) for member in members]
        if any(not each.error_code for each in left):
            if group.state in {STABLE, COMPLETING_REBALANCE}:
                self.rebalance.prepare_or_complete(group, "explicit `LeaveGroup` request")
            else:
                self.rebalance.maybe_complete(group)
        return left

    def _leave_one(self, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if member_id == UNKNOWN_MEMBER_ID:  # an administrator removes a static member
            known_id = group.static_members.get(instance_id or "")
            if known_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = known_id
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


def _left(identity: MemberIdentity, error_code: ErrorCode) -> MemberResponse:
    return MemberResponse(identity.member_id, identity.group_instance_id, error_code)


def _differs(asked: str | None, known: str | None) -> bool:
    return asked is not None and known is not None and asked != known


def _once(request: JoinRequest) -> tuple[JoinResponder, Callable[[ErrorCode], None]]:
    """Return what answers the request, and what refuses it; only the first of both has an effect."""
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
