"""The streams groups of one shard; mirrors the streams groups' part of `GroupMetadataManager`.

An operation looks at a group and returns the records that change it. The runtime replays them into
the group, here and at every broker that loads the log later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.group import CLASSIC
from broker_sim.group.keys import GroupKey, MemberKey
from broker_sim.group.modern.assigned_group import LEAVE_GROUP_EPOCH
from broker_sim.group.modern.member_timers import Wait
from broker_sim.group.modern.replayed_group import replayed_group
from broker_sim.group.streams.describe import describe_group
from broker_sim.group.streams.fencing import Fencing
from broker_sim.group.streams.heartbeat_response import assign_tasks, tell_endpoints, tell_statuses
from broker_sim.group.streams.member import MemberState
from broker_sim.group.streams.member_change import MemberChange
from broker_sim.group.streams.member_updates import MemberUpdates
from broker_sim.group.streams.membership import check_capacity, find_or_make_member
from broker_sim.group.streams.replay import replay_into
from broker_sim.group.streams.streams_group import StreamsGroup
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.group.group import Group
    from broker_sim.group.group_client import GroupClient
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.streams.shard_parts import ShardParts

Response = messages.StreamsGroupHeartbeatResponse
CreatableTopic = messages.CreateTopicsRequest.CreatableTopic


class HeartbeatAnswer(NamedTuple):
    """What a member is told, and what is to be done before that; mirrors `StreamsGroupHeartbeatResult`."""

    response: messages.StreamsGroupHeartbeatResponse
    topics_to_create: Mapping[str, messages.CreateTopicsRequest.CreatableTopic]
    """Internal topics that are missing, by name."""


class StreamsGroups:
    """Makes, keeps and replays the streams groups of one partition."""

    def __init__(self, parts: ShardParts) -> None:
        self._parts = parts
        self._fencing = Fencing(parts)
        self._updates = MemberUpdates(parts, self._fencing)

    # -- look-up --------------------------------------------------------------------------------

    def _find_or_make(self, group_id: str, *, joins: bool, written: list[GroupRecord]) -> StreamsGroup:
        """Return the group; one that is new is not in the shard before its records are.

        Raises `ApiError` GROUP_ID_NOT_FOUND, also where there is a group of another kind, unless that is
        an empty classic one.
        """
        group = self._parts.groups.get(group_id)
        if joins and group is None:
            return StreamsGroup(group_id)
        if joins and group is not None and group.group_type == CLASSIC and group.is_empty:
            written += group.tombstones()
            return StreamsGroup(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        return _of_this_kind(group_id, group)

    def describe(self, group_id: str) -> messages.StreamsGroupDescribeResponse.DescribedGroup:
        """Return what is known of a group of the committed view; `ApiError` GROUP_ID_NOT_FOUND."""
        return describe_group(_of_this_kind(group_id, self._parts.groups.committed(group_id)))

    # -- the log --------------------------------------------------------------------------------

    def replay(self, record: GroupRecord) -> None:
        """Take in a record of a streams group."""
        groups = self._parts.groups
        group = replayed_group(groups, record, StreamsGroup)
        if group is not None and replay_into(group, record):
            groups.remove(group.group_id)
            self._parts.timers.end(Wait.FIRST_TARGET, GroupKey(group.group_id))

    def on_loaded(self, group: StreamsGroup) -> None:
        """Start the timers of a group that was loaded from the log."""
        for member_id in group.members.in_order():
            member = group.members[member_id]
            self._fencing.keep_alive(group.group_id, member)
            if member.state is MemberState.UNREVOKED_TASKS:
                self._fencing.time_revocation(group.group_id, member)

    def on_unloaded(self, group: StreamsGroup) -> None:
        """Stop the timers of a group."""
        self._parts.timers.end(Wait.FIRST_TARGET, GroupKey(group.group_id))
        for member_id in group.members:
            self._parts.timers.end_all(MemberKey(group.group_id, member_id))

    # -- StreamsGroupHeartbeat ------------------------------------------------------------------

    def heartbeat(self, request: messages.StreamsGroupHeartbeatRequest, client: GroupClient) -> Result[HeartbeatAnswer]:
        """Serve a member.

        The request was checked (`check_heartbeat`). Raises `ApiError`: GROUP_ID_NOT_FOUND,
        GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, INVALID_REQUEST,
        STREAMS_INVALID_TOPOLOGY, UNKNOWN_SERVER_ERROR.
        """
        if request.member_epoch == LEAVE_GROUP_EPOCH:
            return self.leave(request.group_id, request.member_id, stops_all=request.shutdown_application)
        return self._stay(request, client)

    def leave(self, group_id: str, member_id: str, *, stops_all: bool = False) -> Result[HeartbeatAnswer]:
        """Remove a member, which may ask all others to stop. Raises `ApiError`: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID."""
        group = _of_this_kind(group_id, self._parts.groups.get(group_id))
        if stops_all:
            group.request_shutdown(member_id)
        left = Response(member_id=member_id, member_epoch=LEAVE_GROUP_EPOCH, status=[])
        return self._fencing.fence(group, group.member(member_id), HeartbeatAnswer(left, {}))

    def _stay(self, request: messages.StreamsGroupHeartbeatRequest, client: GroupClient) -> Result[HeartbeatAnswer]:
        joins = request.member_epoch == 0
        written: list[GroupRecord] = []
        group = self._find_or_make(request.group_id, joins=joins, written=written)
        if joins:
            check_capacity(group, self._parts.settings.max_size)
        member = find_or_make_member(group, request)
        change = MemberChange(group, member, member, request, written)
        configured = self._updates.update(change, client)
        updated = change.updated
        self._fencing.keep_alive(group.group_id, updated)
        if request.shutdown_application:
            group.request_shutdown(request.member_id)
        response = Response(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self._parts.settings.heartbeat_interval_ms(group.group_id),
        )
        if joins or updated.assigned != member.assigned:
            assign_tasks(response, updated)
            group.told_endpoints.pop(updated.member_id, None)
            if updated.user_endpoint is not None:
                group.endpoint_information_epoch += 1
        if group.endpoint_information_epoch != request.endpoint_information_epoch:
            tell_endpoints(response, group, updated, self._parts.environment.image())
        # What a group knows beside its records is lost with its first heartbeat, as in Kafka: the group in
        # the shard is made by the records.
        if request.group_id in self._parts.groups:
            response.endpoint_information_epoch = group.endpoint_information_epoch
        tell_statuses(response, change, configured)
        topics = {} if configured.is_ready else configured.internal_topics_to_be_created
        return Result(HeartbeatAnswer(response, topics), written)


def _of_this_kind(group_id: str, group: Group | None) -> StreamsGroup:
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, StreamsGroup):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    return group
