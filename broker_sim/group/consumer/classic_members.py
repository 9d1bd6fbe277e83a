"""Members of the classic protocol in groups of the consumer protocol, during a migration between both.

Mirrors `classicGroupJoinToConsumerGroup` and its siblings for SyncGroup, Heartbeat and LeaveGroup in
`GroupMetadataManager`. Such a member joins, syncs its assignment, and is told to rejoin
(REBALANCE_IN_PROGRESS) whenever it has to take a reconciliation step. None of its requests waits for other
members. Besides its session, two timers of the rebalance timeout apply: to rejoin when told to, and to sync
after joining.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer.consumer_group import UNOWNED
from broker_sim.group.consumer.member import ClassicMetadata
from broker_sim.group.consumer.requests import leaving_member
from broker_sim.group.consumer_protocol import (
    PROTOCOL_TYPE,
    MalformedConsumerProtocolError,
    encode_assignment,
    read_subscription,
)
from broker_sim.group.delayed_timeout import MemberKey
from broker_sim.group.group import KNOWN_MEMBER_ID_VERSION, NO_TIMEOUT, UNKNOWN_MEMBER_ID
from broker_sim.group.modern.assigned_group import MemberState
from broker_sim.group.modern.assigned_groups import MemberChange, new_member_id
from broker_sim.group.modern.assignment import NO_PARTITIONS, epochs_in_order
from broker_sim.group.modern.member_timers import Wait
from broker_sim.group.modern.static_members import joining_member, known_member
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.group.consumer.consumer_group import ConsumerGroup
    from broker_sim.group.consumer.consumer_groups import Change, ConsumerGroups
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.group import GroupClient
    from broker_sim.group.records import GroupRecord

NO_MIGRATION: Final = "disabled"
Identity = messages.LeaveGroupRequest.MemberIdentity
MemberResponse = messages.LeaveGroupResponse.MemberResponse


class ClassicMembers:
    """Serves the classic APIs for a shard's groups of the consumer protocol."""

    def __init__(self, groups: ConsumerGroups) -> None:
        self._groups = groups
        self._parts = groups.parts
        self._timers = groups.timers

    # -- JoinGroup --------------------------------------------------------------------------------

    def join(
        self,
        group: ConsumerGroup,
        request: messages.JoinGroupRequest,
        client: GroupClient,
        respond: Callable[[messages.JoinGroupResponse], object],
    ) -> Result[messages.JoinGroupResponse]:
        """Add a member or take its next step; a new member that needs an id is answered by `respond` at once.

        Raises `ApiError`: INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID,
        FENCED_INSTANCE_ID, and before Kafka 4.4 UNKNOWN_SERVER_ERROR for an invalid subscription.
        """
        if self._parts.broker.config.group_consumer_migration_policy == NO_MIGRATION:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        is_unknown = request.member_id == UNKNOWN_MEMBER_ID
        instance_id = request.group_instance_id
        if is_unknown:
            request.member_id = new_member_id(self._parts.broker.random)
        self._groups.check_capacity(group, request.member_id, instance_id, joins=is_unknown)
        if not group.supports_classic_protocols(
            request.protocol_type, [protocol.name for protocol in request.protocols]
        ):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if is_unknown and instance_id is None and client.api_version >= KNOWN_MEMBER_ID_VERSION:
            error_code = ErrorCode.MEMBER_ID_REQUIRED
            respond(messages.JoinGroupResponse(error_code=error_code, member_id=request.member_id))
            return Result()
        replacement: list[GroupRecord] = []
        if is_unknown or instance_id is None:
            member, replacement = joining_member(self._groups, group, request.member_id, instance_id, displaces=True)
        else:
            member = known_member(group, request.member_id, instance_id)
        subscription = self._subscription(request)
        updated = _updated(member, request, client, subscription)
        change: Change = MemberChange(group, member, updated, client, self._owned(subscription))
        result = self._take_step(change, request)
        result.records = [*replacement, *result.records]
        return result

    def _subscription(self, request: messages.JoinGroupRequest) -> messages.ConsumerProtocolSubscription:
        """Return the subscription in the first protocol; a consumer sends the same in all of them."""
        try:
            return read_subscription(bytes(request.protocols[0].metadata))
        except MalformedConsumerProtocolError as error:
            is_4_4 = self._groups.is_4_4
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL if is_4_4 else ErrorCode.UNKNOWN_SERVER_ERROR
            raise ApiError(code) from error

    def _take_step(self, change: Change, request: messages.JoinGroupRequest) -> Result[messages.JoinGroupResponse]:
        """Update the member; if it is the last to move to the classic protocol, downgrade the group."""
        group, conversions = change.group, self._groups.conversions
        replaced = group.static_member(request.group_instance_id)
        if replaced is None or not conversions.must_downgrade_for(group, replaced):
            step = self._groups.update(change)
            settled = self._when_joined(request, step.member)
            return Result(_joined(step.member), step.records, on_settled=settled)
        subscription = self._groups.subscribe(change)
        is_stale = group.assignment_epoch < subscription.group_epoch
        updated, member_records = change.updated, list(subscription.records)
        if not is_stale:
            target = group.target_of(updated)
            updated, steps = self._groups.reconcile(
                change, group.assignment_epoch, target, has_changed=subscription.has_changed
            )
            member_records += steps
        result = conversions.downgrade_with(group, replaced, updated, _joined(updated), is_stale=is_stale)
        result.records = [*member_records, *result.records]
        result.on_settled = self._when_joined(request, updated, is_downgraded=True)
        return result

    def _when_joined(
        self, request: messages.JoinGroupRequest, member: ConsumerMember, *, is_downgraded: bool = False
    ) -> Callable[[ErrorCode], None]:
        """Return an `on_settled` that starts the member's sync timeout once its join is committed."""
        key = MemberKey(request.group_id, member.member_id)

        def settled(error_code: ErrorCode) -> None:
            if error_code:
                return
            self._timers.end(Wait.JOIN, key)
            if self._parts.runtime.is_active and not is_downgraded:
                self._groups.keep_alive(key.group_id, member, request.session_timeout_ms)
                self._begin(Wait.SYNC, key, request.rebalance_timeout_ms, member)

        return settled

    def _begin(self, wait: Wait, key: MemberKey, timeout_ms: int, member: ConsumerMember) -> None:
        """Start the timeout for the member's next request."""
        self._timers.begin(
            wait, key, timeout_ms, lambda: self._groups.expire(key.group_id, key.member_id), member.client_id
        )

    def _owned(self, subscription: messages.ConsumerProtocolSubscription) -> Mapping[bytes, Sequence[int]]:
        """Return the partitions that the member reports as owned, of existing topics."""
        topics = self._parts.broker.image().topics
        return {
            topics[owned.topic].topic_id: owned.partitions
            for owned in subscription.owned_partitions
            if owned.topic in topics
        }

    # -- SyncGroup --------------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: messages.SyncGroupRequest) -> Result[messages.SyncGroupResponse]:
        """Answer with the member's assignment.

        Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
        INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS.
        """
        member, classic = self._find_member(group, request.member_id, request.group_instance_id, request.generation_id)
        name, metadata = classic.protocols[0]
        if request.protocol_type not in {None, PROTOCOL_TYPE} or (request.protocol_name not in {None, name}):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        key = MemberKey(group.group_id, member.member_id)
        # A member that has to revoke partitions has already rejoined, and syncs first.
        if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED:
            self._expect_join(key, member)
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

        response = messages.SyncGroupResponse(protocol_type=request.protocol_type, protocol_name=request.protocol_name)

        def settled(error_code: ErrorCode) -> None:
            if error_code:
                return
            self._timers.end(Wait.SYNC, key)
            if self._parts.runtime.is_active:
                self._groups.keep_alive(group.group_id, member, classic.session_timeout_ms)
            response.assignment = self._assignment(member, metadata)

        return Result(response, on_settled=settled)

    def _assignment(self, member: ConsumerMember, metadata: bytes) -> bytes:
        names = self._parts.broker.image().topic_names
        return encode_assignment(
            ((names[topic_id], numbers) for topic_id, numbers in epochs_in_order(member.assigned) if topic_id in names),
            metadata,
        )

    def _expect_join(self, key: MemberKey, member: ConsumerMember) -> None:
        """Start the member's rebalance timeout for its join, unless it is already running."""
        if not self._timers.is_running(Wait.JOIN, key):
            self._begin(Wait.JOIN, key, member.rebalance_timeout_ms, member)

    @staticmethod
    def _find_member(
        group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
    ) -> tuple[ConsumerMember, ClassicMetadata]:
        """Return the member and its classic metadata.

        Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
        """
        member = known_member(group, member_id, instance_id)
        if member.classic is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if generation_id != member.member_epoch:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        return member, member.classic

    # -- Heartbeat --------------------------------------------------------------------------------

    def heartbeat(self, group: ConsumerGroup, request: messages.HeartbeatRequest) -> Result[ErrorCode]:
        """Extend the member's session; return NONE, or REBALANCE_IN_PROGRESS if it must rejoin.

        It must rejoin (A) to reach the target's epoch, (B) to revoke partitions, (C) to get partitions that
        other members have released. Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
        ILLEGAL_GENERATION.
        """
        member, classic = self._find_member(group, request.member_id, request.group_instance_id, request.generation_id)
        self._groups.keep_alive(group.group_id, member, classic.session_timeout_ms)
        if (
            member.member_epoch < group.assignment_epoch  # A
            or member.state is MemberState.UNREVOKED  # B
            or (  # C
                member.state is MemberState.UNRELEASED and not _waits_for_others(group, member)
            )
        ):
            self._expect_join(MemberKey(group.group_id, member.member_id), member)
            return Result(ErrorCode.REBALANCE_IN_PROGRESS)
        return Result(ErrorCode.NONE)

    # -- LeaveGroup -------------------------------------------------------------------------------

    def leave(self, group: ConsumerGroup, identities: Sequence[Identity]) -> Result[list[MemberResponse]]:
        """Remove members of either protocol; return the outcome of each."""
        member_responses: list[MemberResponse] = []
        leaving: dict[str, ConsumerMember] = {}
        for identity in identities:
            error_code = ErrorCode.NONE
            try:
                member = leaving_member(group, identity.member_id, identity.group_instance_id)
                leaving[member.member_id] = member
            except ApiError as error:
                error_code = error.error_code
            member_responses.append(MemberResponse(identity.member_id, identity.group_instance_id, error_code))
        return self._groups.fence(group, list(leaving.values()), member_responses)


def _joined(member: ConsumerMember) -> messages.JoinGroupResponse:
    assert member.classic is not None
    return messages.JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=member.classic.protocols[0][0],
        member_id=member.member_id,
    )


def _updated(
    member: ConsumerMember,
    request: messages.JoinGroupRequest,
    client: GroupClient,
    subscription: messages.ConsumerProtocolSubscription,
) -> ConsumerMember:
    """Return the member updated from its join; it has no regular expression, which the classic protocol lacks."""
    timeout_ms = request.rebalance_timeout_ms
    instance_id = request.group_instance_id
    return replace(
        member.with_topic_names(subscription.topics),
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms,
        subscribed_topic_regex="",
        client_id=client.client_id,
        client_host=client.client_host,
        classic=ClassicMetadata(
            request.session_timeout_ms,
            # Copies, because the request's bytes are views of its frame.
            tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
        ),
    )


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether another member still owns a partition of the member's target."""
    target = group.targets.get(member.member_id, NO_PARTITIONS)
    return any(
        number not in member.assigned.get(topic_id, ()) and group.partition_epoch(topic_id, number) != UNOWNED
        for topic_id, numbers in target.items()
        for number in numbers
    )
