"""JoinGroup at the coordinator; mirrors `GroupMetadataManager.classicGroupJoin`.

A joining member is one of: a new dynamic member, which gets a member id and must rejoin with it (KIP-394); a
new static member, or one that returns and replaces its former member id (KIP-345); a pending member that
rejoins with its id; a known member that joins the next generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.classic.classic_group import COMPLETING_REBALANCE, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from broker_sim.group.classic.classic_member import ClassicMember, MemberProtocol
from broker_sim.group.classic.group_metadata import group_record
from broker_sim.group.classic.rebalance import has_failed_since, join_response
from broker_sim.group.group import KNOWN_MEMBER_ID_VERSION, UNKNOWN_MEMBER_ID
from broker_sim.protocol import messages
from broker_sim.protocol.uuids import version_4

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.group.classic.classic_group import ClassicGroup
    from broker_sim.group.classic.classic_member import JoinResponder
    from broker_sim.group.classic.rebalance import Rebalance
    from broker_sim.group.group import GroupClient

    JoinResult = Result[messages.JoinGroupResponse]

SKIP_ASSIGNMENT_VERSION = 9


def _uuid_text(random_bits: int) -> str:
    """Return `str(uuid.UUID(int=random_bits, version=4))`, in half of the time."""
    text = version_4(random_bits.to_bytes(16, "big")).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _ignore(response: messages.JoinGroupResponse) -> None:
    """Ignore the response: the member is already answered, but still counts as awaiting its join."""


class JoinRequest:
    """A JoinGroup request with its client and responder."""

    __slots__ = ("client", "message", "protocols", "respond")

    def __init__(self, message: messages.JoinGroupRequest, client: GroupClient, respond: JoinResponder) -> None:
        self.message = message
        self.client = client
        self.respond = respond
        # Copies, because the request's bytes are views of its frame.
        self.protocols: Sequence[MemberProtocol] = tuple(
            [MemberProtocol(protocol.name, bytes(protocol.metadata)) for protocol in message.protocols]
        )

    @property
    def reason(self) -> str:
        """The client's reason for joining, if given (KIP-800)."""
        return self.message.reason or "not provided"

    def refuse(self, error_code: ErrorCode, member_id: str = UNKNOWN_MEMBER_ID) -> JoinResult:
        """Answer with an error, and return an empty result."""
        self.respond(messages.JoinGroupResponse(error_code=error_code, member_id=member_id))
        return Result()


class Joins:
    """Serves JoinGroup for the classic groups of a shard."""

    def __init__(self, broker: BrokerContext, rebalance: Rebalance) -> None:
        self._broker = broker
        self._rebalance = rebalance

    def join(self, group: ClassicGroup, request: JoinRequest) -> JoinResult:
        """Answer the request, now or when the next generation begins; return the records to write.

        As in Kafka, the member that completes a join phase without a common protocol gets an error.
        """
        member_id = request.message.member_id
        if not self._accepts(group, member_id):
            self._drop(group, member_id)
            return request.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if group.state is DEAD:
            return request.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
        if not group.supports_protocols(request.message.protocol_type, request.protocols):
            return request.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        is_new = member_id == UNKNOWN_MEMBER_ID
        old_operation = group.join_operation
        result = (self._join_new_member if is_new else self._join_known_member)(group, request)
        if has_failed_since(group, old_operation):
            for member in group.members.values():
                if member.respond_to_join is request.respond:
                    member.respond_to_join = _ignore
                    return request.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
        return result

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """Return whether `group.max.size` allows the member to join.

        During a join phase only joined members count: members of the last generation may not return, and if
        there are too many, the last to join are rejected.
        """
        if group.state in {EMPTY, DEAD}:
            return True
        size = self._broker.config.group_max_size
        member = group.members.get(member_id)
        if group.state is PREPARING_REBALANCE:
            if member is not None and member.is_awaiting_join:
                return True
            return group.awaiting_join_count < size
        return member is not None or len(group.members) < size

    def _drop(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member rejected by `group.max.size`."""
        member = group.members.get(member_id)
        if member is not None:
            self._rebalance.sessions.end(group, member)
        self._rebalance.sessions.end_pending(group, member_id)
        group.remove(member_id)

    # -- new members ----------------------------------------------------------------------------

    def _join_new_member(self, group: ClassicGroup, request: JoinRequest) -> JoinResult:
        instance_id = request.message.group_instance_id
        client = request.client
        prefix = client.client_id if instance_id is None else instance_id
        member_id = f"{prefix}-{_uuid_text(self._broker.random.getrandbits(128))}"
        if instance_id is not None:
            old_id = group.static_members.get(instance_id)
            if old_id is not None:
                return self._replace_static_member(group, request, old_id, member_id)
        elif client.api_version >= KNOWN_MEMBER_ID_VERSION:
            self._rebalance.sessions.begin_pending(
                group, member_id, request.message.session_timeout_ms, client.client_id
            )
            return request.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        return self._add(group, request, member_id)

    def _add(self, group: ClassicGroup, request: JoinRequest, member_id: str) -> JoinResult:
        """Add a member and begin a rebalance."""
        message = request.message
        member = ClassicMember(
            member_id,
            group_instance_id=message.group_instance_id,
            client_id=request.client.client_id,
            client_host=request.client.client_host,
            rebalance_timeout_ms=message.rebalance_timeout_ms,
            session_timeout_ms=message.session_timeout_ms,
            protocols=request.protocols,
        )
        member.is_new = True
        if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
            group.new_member_added = True
        self._rebalance.sessions.begin_first(group, member)
        group.add(member, message.protocol_type, request.respond)
        self._rebalance.prepare_or_complete(group, f"adding new member {member_id}; client reason: {request.reason}")
        return Result()

    # -- returning static members -----------------------------------------------------------------

    def _replace_static_member(self, group: ClassicGroup, request: JoinRequest, old_id: str, new_id: str) -> JoinResult:
        """Fence the static member, and replace it by its successor."""
        message = request.message
        assert message.group_instance_id is not None
        old_leader_id = group.leader_id or ""
        member = self._fence(group, message.group_instance_id, old_id, new_id)
        old_values = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        group.update_member(
            member, request.protocols, message.rebalance_timeout_ms, message.session_timeout_ms, request.respond
        )
        if group.state is COMPLETING_REBALANCE:
            # The leader may be assigning to the old member id.
            self._rebalance.prepare(group, f"updating static member {new_id}")
        elif group.state is not STABLE:
            self._rebalance.maybe_complete(group)
        elif group.select_protocol() != group.protocol_name:
            self._rebalance.prepare_or_complete(group, f"static member {new_id} joined anew")
        else:
            return self._store_replacement(group, request, member, old_id, old_values, old_leader_id)
        return Result()

    def _fence(self, group: ClassicGroup, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
        old = group.members[old_id]
        group.answer_error(old, ErrorCode.FENCED_INSTANCE_ID)
        self._rebalance.sessions.end(group, old)
        member = group.replace_static_member(instance_id, old_id, new_id)
        self._rebalance.sessions.begin(group, member)
        return member

    def _store_replacement(
        self,
        group: ClassicGroup,
        request: JoinRequest,
        member: ClassicMember,
        old_id: str,
        old_values: tuple[Sequence[MemberProtocol], int, int],
        old_leader_id: str,
    ) -> JoinResult:
        """Write the replacement; the successor then continues the generation without a rebalance."""
        can_skip = request.client.api_version >= SKIP_ASSIGNMENT_VERSION
        instance_id = member.group_instance_id
        assert instance_id is not None

        def stored(error_code: ErrorCode) -> None:
            is_leader = can_skip and group.is_leader(member.member_id)
            if not error_code:
                # Before version 9 the leader must not learn that it is the leader, or it would assign.
                response = join_response(
                    group,
                    member.member_id,
                    with_members=is_leader and group.state is not PREPARING_REBALANCE,
                    leader_id=None if can_skip else old_leader_id,
                    skip_assignment=is_leader,
                )
                group.answer_join(member, response)
                return
            if group.static_members.get(instance_id) == member.member_id:
                group.update_member(member, *old_values, None)
                self._rebalance.sessions.end(group, member)
                old = group.replace_static_member(instance_id, member.member_id, old_id)
                self._rebalance.sessions.begin(group, old)
            response = join_response(group, UNKNOWN_MEMBER_ID, with_members=False, leader_id=old_leader_id)
            response.error_code = error_code
            request.respond(response)

        assignments = {each.member_id: each.assignment for each in group.members.values()}
        record = group_record(group, assignments)
        return Result(records=[record], replays=False, on_settled=stored)

    # -- known members ----------------------------------------------------------------------------

    def _join_known_member(self, group: ClassicGroup, request: JoinRequest) -> JoinResult:
        message = request.message
        member_id = message.member_id
        if member_id in group.pending_join_members:
            if message.group_instance_id is not None:
                return request.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
            return self._add(group, request, member_id)
        try:
            member = group.validate_member(member_id, message.group_instance_id)
        except ApiError as error:
            return request.refuse(error.error_code, member_id)
        if group.state is EMPTY:
            return request.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
        if self._is_current(group, member, request):
            is_leader = group.is_leader(member_id)
            request.respond(join_response(group, member_id, with_members=is_leader))
        else:
            group.update_member(
                member, request.protocols, message.rebalance_timeout_ms, message.session_timeout_ms, request.respond
            )
            self._rebalance.prepare_or_complete(
                group, f"member {member_id} joins again; client reason: {request.reason}"
            )
        return Result()

    @staticmethod
    def _is_current(group: ClassicGroup, member: ClassicMember, request: JoinRequest) -> bool:
        """Return whether to answer with the current generation, for a member that has missed the response.

        The leader of a stable group rejoins to trigger a new assignment.
        """
        if group.state is PREPARING_REBALANCE or member.protocols != request.protocols:
            return False
        return group.state is COMPLETING_REBALANCE or not group.is_leader(member.member_id)
