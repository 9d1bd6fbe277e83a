"""The consumer-protocol groups of one shard; mirrors the modern half of `GroupMetadataManager`.

An operation looks at a group and returns the records that change it. The runtime replays them into
the group, here and at every broker that loads the log later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer import records
from broker_sim.group.consumer.classic_members import ClassicMembers
from broker_sim.group.consumer.consumer_group import ConsumerGroup
from broker_sim.group.consumer.describe import describe_group
from broker_sim.group.consumer.fencing import Fencing
from broker_sim.group.consumer.member import LEAVE_GROUP_STATIC_EPOCH, MemberState
from broker_sim.group.consumer.member_change import MemberChange
from broker_sim.group.consumer.member_updates import MemberUpdates
from broker_sim.group.consumer.membership import check_capacity, find_or_make_member, known_member, new_member_id
from broker_sim.group.consumer.regexes import Regexes
from broker_sim.group.consumer.replay import replay_into
from broker_sim.group.consumer.requests import is_full, owned_partitions
from broker_sim.group.group import CLASSIC, NO_TIMEOUT
from broker_sim.group.keys import MemberKey
from broker_sim.group.modern.assigned_group import LEAVE_GROUP_EPOCH
from broker_sim.group.modern.assignment import epochs_in_order
from broker_sim.group.modern.replayed_group import replayed_group
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from broker_sim.group.consumer.shard_parts import ShardParts
    from broker_sim.group.group import Group
    from broker_sim.group.group_client import GroupClient
    from broker_sim.group.modern.assignment import Epochs
    from broker_sim.group.records import GroupRecord
    from broker_sim.metadata import ImageChanges, MetadataImage

T = TypeVar("T")
Response = messages.ConsumerGroupHeartbeatResponse


class ConsumerGroups:
    """Makes, keeps and replays the consumer-protocol groups of one partition."""

    def __init__(self, parts: ShardParts) -> None:
        self._parts = parts
        self.fencing = Fencing(parts)
        self._regexes = Regexes(parts, self.find)
        self._updates = MemberUpdates(parts, self._regexes, self.fencing)
        self.classic_members = ClassicMembers(parts, self.fencing, self._updates)
        self._image = parts.environment.image()

    # -- look-up --------------------------------------------------------------------------------

    def find(self, group_id: str) -> ConsumerGroup:
        """Return the group; `ApiError` GROUP_ID_NOT_FOUND."""
        return _of_this_kind(group_id, self._parts.groups.get(group_id))

    def _find_or_make(self, group_id: str, joins: bool, written: list[GroupRecord]) -> ConsumerGroup:
        """Return the group; one that is new is not in the shard before its records are."""
        group = self._parts.groups.get(group_id)
        if group is None:
            if not joins:
                raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
            return ConsumerGroup(group_id)
        if joins and group.group_type == CLASSIC and group.is_empty:
            written += group.tombstones()
            return ConsumerGroup(group_id)
        if joins and group.group_type == CLASSIC:
            upgraded = self._parts.conversions.upgrade(group, written)
            self._begin_sessions(upgraded)
            return upgraded
        return self.find(group_id)

    def _begin_sessions(self, group: ConsumerGroup) -> None:
        """Begin the sessions of a group's classic members, in the order in which equal ones will end.

        If the records cannot be written, the sessions end without consequences.
        """
        for member_id in group.members.in_order():
            member = group.members[member_id]
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
                self.fencing.keep_alive(group.group_id, member, timeout_ms)

    # -- the log and metadata -------------------------------------------------------------------

    def replay(self, record: GroupRecord) -> None:
        """Take in a record of a group of the consumer protocol."""
        groups = self._parts.groups
        group = replayed_group(groups, record, ConsumerGroup)
        if group is not None and replay_into(group, record):
            groups.remove(group.group_id)

    def on_image(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Let expressions be matched again if there are new topics; mirrors `onMetadataUpdate`."""
        known, self._image = self._image.topic_names, image
        if any(topic.topic_id not in known for _, topic, _ in changes.partitions):
            self._regexes.topics_created(image)

    def on_loaded(self, group: ConsumerGroup) -> None:
        """Start the timers of a group that was loaded from the log."""
        for member_id in group.members.in_order():
            member = group.members[member_id]
            self.fencing.keep_alive(group.group_id, member)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._updates.time_revocation(group.group_id, member)

    def on_unloaded(self, group: ConsumerGroup) -> None:
        """Stop the timers of a group."""
        for member_id in group.members:
            self._parts.timers.end_all(MemberKey(group.group_id, member_id))

    # -- ConsumerGroupHeartbeat -----------------------------------------------------------------

    def heartbeat(self, request: messages.ConsumerGroupHeartbeatRequest, client: GroupClient) -> Result[Response]:
        """Serve a member of the consumer protocol.

        The request was checked (`check_heartbeat`). Raises `ApiError`: GROUP_ID_NOT_FOUND,
        GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID,
        FENCED_INSTANCE_ID, INVALID_REGULAR_EXPRESSION.
        """
        if request.member_epoch in {LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH}:
            return self._leave(request)
        return self._stay(request, client)

    def _stay(self, request: messages.ConsumerGroupHeartbeatRequest, client: GroupClient) -> Result[Response]:
        joins, owned = request.member_epoch == 0, owned_partitions(request)
        written: list[GroupRecord] = []
        group = self._find_or_make(request.group_id, joins, written)
        check_capacity(group, request.member_id, self._parts.settings.max_size)
        member = find_or_make_member(
            group,
            request.member_id or new_member_id(self._parts.environment.random),
            request.instance_id,
            written,
            joins=joins,
            member_epoch=request.member_epoch,
            owned=owned,
        )
        names = request.subscribed_topic_names
        timeout_ms = request.rebalance_timeout_ms
        named = member if names is None else member.with_topic_names(names)
        updated = replace(
            named,
            instance_id=_newer(request.instance_id, member.instance_id),
            rack_id=_newer(request.rack_id, member.rack_id),
            rebalance_timeout_ms=(member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms),
            server_assignor=_newer(request.server_assignor, member.server_assignor),
            subscribed_topic_regex=_newer(request.subscribed_topic_regex, member.subscribed_topic_regex),
            client_id=client.client_id,
            client_host=client.client_host,
            classic=None,
        )
        change = MemberChange(group, member, updated, client, owned, written)
        updated = self._updates.update(change)
        self.fencing.keep_alive(group.group_id, updated)
        response = Response(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self._parts.settings.heartbeat_interval_ms(group.group_id),
        )
        if joins or is_full(request) or updated.assigned != member.assigned:
            response.assignment = _assignment(updated.assigned)
        return Result(response, written)

    # -- leaving --------------------------------------------------------------------------------

    def _leave(self, request: messages.ConsumerGroupHeartbeatRequest) -> Result[Response]:
        group = self.find(request.group_id)
        member = known_member(group, request.member_id, request.instance_id)
        if request.member_epoch == LEAVE_GROUP_STATIC_EPOCH:
            away = records.current_assignment(group.group_id, member.left_for_a_while())
            told = Response(member_id=member.member_id, member_epoch=LEAVE_GROUP_STATIC_EPOCH)
            return Result(told, [away])
        left = Response(member_id=request.member_id, member_epoch=request.member_epoch)
        return self.fencing.fence(group, [member], left)

    # -- ConsumerGroupDescribe ------------------------------------------------------------------

    def describe(self, group_id: str) -> messages.ConsumerGroupDescribeResponse.DescribedGroup:
        """Return what is known of a group of the committed view; `ApiError` GROUP_ID_NOT_FOUND."""
        return self.describe_now(_of_this_kind(group_id, self._parts.groups.committed(group_id)))

    def describe_now(self, group: ConsumerGroup) -> messages.ConsumerGroupDescribeResponse.DescribedGroup:
        """Return what is known of a group, which need not be committed."""
        return describe_group(group, self._parts.settings.default_assignor, self._parts.environment.image())


def _of_this_kind(group_id: str, group: Group | None) -> ConsumerGroup:
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return group


def _newer(told: T | None, known: T) -> T:
    return known if told is None else told


def _assignment(assigned: Epochs) -> messages.ConsumerGroupHeartbeatResponse.Assignment:
    return Response.Assignment(
        [Response.TopicPartitions(topic, numbers) for topic, numbers in epochs_in_order(assigned)]
    )
