"""The groups of one partition of `__consumer_offsets`; mirrors `GroupCoordinatorShard`.

Groups are changed by records. Operations return records, which the runtime appends and replays here, as it does
when it loads the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.classic.classic_group import ClassicGroup
from broker_sim.group.classic.classic_groups import ClassicGroups, leave_response
from broker_sim.group.consumer.classic_members import ClassicMembers
from broker_sim.group.consumer.consumer_group import ConsumerGroup
from broker_sim.group.consumer.consumer_groups import ConsumerGroups
from broker_sim.group.group import UNKNOWN_MEMBER_ID
from broker_sim.group.group_timeline import GroupTimeline
from broker_sim.group.migration import Migration
from broker_sim.group.modern.assigned_group import AssignedGroup
from broker_sim.group.modern.assigned_groups import AssignedGroups, ShardParts
from broker_sim.group.modern.metadata_hash import TopicHashes
from broker_sim.group.offset_metadata import OffsetMetadataManager
from broker_sim.group.share.share_group import ShareGroup
from broker_sim.group.share.share_groups import ShareGroups
from broker_sim.group.share.share_states import ShareStates
from broker_sim.group.streams.streams_group import StreamsGroup
from broker_sim.group.streams.streams_groups import StreamsGroups
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import NO_PRODUCER_ID
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.result import ShardRuntime
    from broker_sim.group.group import Group, GroupClient
    from broker_sim.group.metrics import GroupCounters
    from broker_sim.group.offsets import OffsetCommit
    from broker_sim.group.records import GroupRecord
    from broker_sim.metadata import ImageChanges, MetadataImage

    JoinResponder = Callable[[messages.JoinGroupResponse], object]
    SyncResponder = Callable[[messages.SyncGroupResponse], object]

log = get_logger(__name__)

NOT_FOUND_VERSION: Final = 6
"""First version of DescribeGroups in which an unknown group is an error."""
DEAD: Final = "Dead"
Described = messages.DescribeGroupsResponse.DescribedGroup


class GroupShard:
    """The groups and offsets of one partition.

    `groups` has groups of all types. Classic members of a consumer group are served by `classic_members`.
    """

    def __init__(self, partition: int, broker: BrokerContext, counters: GroupCounters, runtime: ShardRuntime) -> None:
        self.partition = partition
        self.runtime = runtime
        self.groups = GroupTimeline(runtime)
        bound = log.bind(broker.clock, node=f"broker-{broker.broker_id}", shard=partition)
        self._hashes = hashes = TopicHashes()
        self.classic = ClassicGroups(broker, counters, runtime, self.groups, bound)
        parts = ShardParts(broker, counters, runtime, self.groups, hashes, bound)
        self.consumer = ConsumerGroups(parts, Migration(broker, self.groups, self.classic.rebalance, hashes))
        self.classic_members = ClassicMembers(self.consumer)
        self.share = ShareGroups(parts)
        self.share_states = ShareStates(broker, self.groups, self.share)
        self.streams = StreamsGroups(parts)
        self._assigned: Sequence[AssignedGroups[Any, Any, Any, Any, Any]] = (self.consumer, self.share, self.streams)
        self.offset_metadata = OffsetMetadataManager(
            broker, counters, runtime, self.groups, self.classic.get_or_create, bound
        )
        self.offsets = self.offset_metadata.offsets
        self.transactional_offsets = self.offset_metadata.transactional_offsets

    def _groups_of_kind(self, group: Group) -> AssignedGroups[Any, Any, Any, Any, Any] | None:
        """Return the groups of the same kind, None for a classic group."""
        return next((groups for groups in self._assigned if groups.is_own(group)), None)

    # -- members of the classic protocol --------------------------------------------------------

    def join_group(
        self, request: messages.JoinGroupRequest, client: GroupClient, respond: JoinResponder
    ) -> Result[messages.JoinGroupResponse]:
        """Serve JoinGroup.

        For a consumer group the result has the response. A classic group calls `respond` itself: at once with an
        error, or when the next generation begins.
        """
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            return self.classic_members.join(group, request, client, respond)
        is_streams = isinstance(group, StreamsGroup) and not group.is_empty
        if is_streams or isinstance(group, ShareGroup):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            return Result(messages.JoinGroupResponse(error_code=code, member_id=UNKNOWN_MEMBER_ID))
        return self.classic.join(request, client, respond)

    def sync_group(
        self, request: messages.SyncGroupRequest, respond: SyncResponder
    ) -> Result[messages.SyncGroupResponse]:
        """Serve SyncGroup; `respond` as in `join_group`."""
        group = self._classic_or_consumer_group(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self.classic_members.sync(group, request)
        if group.is_empty:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return self.classic.sync(group, request, respond)

    def heartbeat(self, request: messages.HeartbeatRequest) -> Result[ErrorCode]:
        """Serve Heartbeat: extend the session, and return NONE or REBALANCE_IN_PROGRESS."""
        group = self._classic_or_consumer_group(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self.classic_members.heartbeat(group, request)
        return self.classic.heartbeat(group, request)

    def _classic_or_consumer_group(self, group_id: str) -> ClassicGroup | ConsumerGroup:
        """Return the classic or consumer group. Raises `ApiError` UNKNOWN_MEMBER_ID if there is none."""
        group = self.groups.get(group_id)
        if not isinstance(group, (ClassicGroup, ConsumerGroup)):
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
        return group

    def leave_group(
        self, group_id: str, members: Sequence[messages.LeaveGroupRequest.MemberIdentity]
    ) -> Result[list[messages.LeaveGroupResponse.MemberResponse]]:
        """Remove members from a classic or consumer group; return the outcome of each."""
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return self.classic.leave(group, members)
        if isinstance(group, ConsumerGroup):
            return self.classic_members.leave(group, members)
        return Result([leave_response(member, ErrorCode.UNKNOWN_MEMBER_ID) for member in members])

    def remove_member(self, group_id: str, member_id: str) -> Result[Any]:
        """Remove a member from a group of any type, as if it had left."""
        group = self.groups.get(group_id)
        if isinstance(group, ShareGroup):
            return self.share.leave(group_id, member_id)
        if isinstance(group, StreamsGroup):
            return self.streams.leave(group_id, member_id)
        return self.leave_group(group_id, [messages.LeaveGroupRequest.MemberIdentity(member_id)])

    def rebalance(self, group_id: str) -> Result[ErrorCode]:
        """Begin a rebalance of a group of any type, as after a change of subscriptions.

        Raises `ApiError` GROUP_ID_NOT_FOUND for a group without members.
        """
        group = self.groups.get(group_id)
        if group is None or group.is_empty:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} has no members to rebalance.")
        groups = self._groups_of_kind(group)
        if groups is not None:
            return groups.rebalance(group_id)
        assert isinstance(group, ClassicGroup)
        self.classic.rebalance.prepare_or_complete(group, "requested by a verb of the cluster")
        return Result(ErrorCode.NONE)

    # -- offsets and administration -------------------------------------------------------------

    def offset_commit(self, commit: OffsetCommit) -> Result[list[ErrorCode]]:
        """Commit offsets, which extends the member's session."""
        result = self.offset_metadata.commit(commit)
        self.classic.member_committed(commit.group_id, commit.member_id)
        return result

    def describe(self, group_id: str, api_version: int) -> Described:
        """Return the group for DescribeGroups; if it is not a classic group, its state is Dead."""
        group = self.groups.committed(group_id)
        described = None if group is None else group.describe()
        if described is not None:
            return described
        if api_version < NOT_FOUND_VERSION:
            return Described(group_id=group_id, group_state=DEAD)
        text = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
        return Described(ErrorCode.GROUP_ID_NOT_FOUND, text, group_id, DEAD)

    # -- replay ---------------------------------------------------------------------------------

    def replay(self, record: GroupRecord, record_offset: int, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply the record at that log offset; it is transactional if `producer_id` is set."""
        key, value = record.key, record.value
        producer = None if producer_id == NO_PRODUCER_ID else producer_id
        if isinstance(key, record_messages.OffsetCommitKey):
            assert value is None or isinstance(value, record_messages.OffsetCommitValue)
            self.offset_metadata.replay(key, value, record_offset, producer)
        elif isinstance(key, record_messages.LegacyOffsetCommitKey):
            assert value is None or isinstance(value, record_messages.LegacyOffsetCommitValue)
            self.offset_metadata.replay(*_converted(key, value), record_offset, producer)
        elif isinstance(key, record_messages.GroupMetadataKey):
            self.classic.replay(record)
        else:
            name = type(key).__name__
            next(groups for groups in self._assigned if name.startswith(groups.kind.prefix)).replay(record)

    def replay_marker(self, producer_id: int, marker_offset: int, *, is_commit: bool) -> None:
        """Apply the marker at that log offset, which ends the producer's transaction."""
        self.offset_metadata.replay_marker(producer_id, marker_offset, is_commit=is_commit)

    # -- roles ----------------------------------------------------------------------------------

    def on_image(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Have groups check their topics again if these have changed; mirrors `onMetadataUpdate`."""
        self.consumer.on_image(changes, image)
        changed = {topic.name for topic in changes.deleted_topics}
        changed.update(topic.name for _, topic, _ in changes.partitions)
        if not changed:
            return
        self._hashes.forget(changed)
        for group in self.groups.values():
            if isinstance(group, AssignedGroup) and group.depends_on(changed):
                group.request_metadata_refresh()

    def on_loaded(self) -> None:
        """Start the groups' timers after the log is replayed."""
        for group in list(self.groups.values()):
            groups = self._groups_of_kind(group)
            if groups is not None:
                groups.on_loaded(group)
            elif isinstance(group, ClassicGroup):
                self.classic.rebalance.start(group)

    def on_unloaded(self) -> None:
        """Stop the groups' timers, and answer parked requests: this broker is no longer the leader."""
        for group in list(self.groups.values()):
            groups = self._groups_of_kind(group)
            if groups is not None:
                groups.on_unloaded(group)
            elif isinstance(group, ClassicGroup):
                self.classic.rebalance.stop(group)


def _converted(
    key: record_messages.LegacyOffsetCommitKey, value: record_messages.LegacyOffsetCommitValue | None
) -> tuple[record_messages.OffsetCommitKey, record_messages.OffsetCommitValue | None]:
    """Convert an offset record from Kafka 0.8 to the current format."""
    converted = record_messages.OffsetCommitKey(key.group, key.topic, key.partition)
    if value is None:
        return converted, None
    return converted, record_messages.OffsetCommitValue(value.offset, -1, value.metadata, value.commit_timestamp)
