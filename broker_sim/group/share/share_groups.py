"""The share groups of one shard: their part of the steps of `AssignedGroups`.

Mirrors the share groups' part of `GroupMetadataManager` and `ShareTargetAssignmentBuilder`. A share partition is
assigned only once the share coordinator has its state, so a heartbeat has one more step:
E. record the share partitions to initialize; they may be assigned once that is done
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from broker_sim.group import record_messages
from broker_sim.group.modern.assigned_group import JOIN_GROUP_EPOCH, LEAVE_GROUP_EPOCH
from broker_sim.group.modern.assigned_groups import AssignedGroups, MemberChange, Step, Subscription, newer
from broker_sim.group.modern.assignment import NO_PARTITIONS, Partitions, topic_ids_of
from broker_sim.group.modern.records import epoch_record, member_tombstones
from broker_sim.group.request_checks import check_text, invalid_request
from broker_sim.group.share import records
from broker_sim.group.share.assignors import ShareGroupSpec, ShareMemberSpec, assign
from broker_sim.group.share.member import ShareMember
from broker_sim.group.share.share_group import ShareGroup, describe_group
from broker_sim.group.share.state_partitions import StatePartitions
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import copied_capacity, hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.coordinator.result import Result
    from broker_sim.group.group import GroupClient
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.share.state_partitions import Topics

    Change = MemberChange[ShareGroup, ShareMember, None]


Response = messages.ShareGroupHeartbeatResponse


class HeartbeatAnswer(NamedTuple):
    """The response to a member, and the share partitions to initialize afterwards."""

    response: messages.ShareGroupHeartbeatResponse
    to_initialize: Topics | None = None
    state_epoch: int = -1
    """The group epoch, in which they are initialized."""


class ShareGroups(
    AssignedGroups[ShareGroup, ShareMember, Partitions, messages.ShareGroupHeartbeatRequest, HeartbeatAnswer]
):
    """Creates, updates and replays the share groups of one shard."""

    group_class = ShareGroup

    def replay_own(self, group: ShareGroup, key: Any, value: Any) -> None:
        """Apply the record of the share partitions with state."""
        assert isinstance(key, record_messages.ShareGroupStatePartitionMetadataKey)
        group.state_partitions = None if value is None else StatePartitions.of_record(value, self.now_ms())

    def describe(self, group_id: str) -> messages.ShareGroupDescribeResponse.DescribedGroup:
        """Return the group in the committed view. Raises `ApiError` GROUP_ID_NOT_FOUND."""
        return describe_group(self.find_committed(group_id), self.image())

    # -- the steps of a heartbeat ---------------------------------------------------------------

    def update_from_request(
        self, group: ShareGroup, request: messages.ShareGroupHeartbeatRequest, client: GroupClient
    ) -> tuple[Change, list[GroupRecord]]:
        """Run step A."""
        joins = request.member_epoch == JOIN_GROUP_EPOCH
        member = group.member_or_new(request.member_id) if joins else group.member(request.member_id)
        hint = f", and it does not match the previous member epoch ({member.previous_member_epoch})"
        self.check_epoch(member, request.member_epoch, lost_response=True, hint=hint)
        names = request.subscribed_topic_names
        updated = replace(
            member if names is None else member.with_topic_names(names),
            rack_id=newer(request.rack_id, member.rack_id),
            client_id=client.client_id,
            client_host=client.client_host,
        )
        return MemberChange(group, member, updated, client, None), []

    def subscribe(self, change: Change) -> Subscription:
        """Run step B: also bump the epoch if the assignable share partitions have changed."""
        group, member, updated = change.group, change.member, change.updated
        member_records = self.changed_member(change)
        bumps = updated.subscribed_topic_names != member.subscribed_topic_names
        if group.assignment_epoch >= group.group_epoch:
            bumps = bumps or group.has_unassigned_state
        if not bumps and not group.has_metadata_expired:
            topics, homogeneous = group.topics, group.is_homogeneous
            return Subscription(group.group_epoch, member_records, topics=topics, is_homogeneous=homogeneous)
        refreshed = self.refresh(
            group,
            group.topics_with(member, updated),
            regexes=group.regexes,
            size=len(group.members) + (updated.member_id not in group.members),
            bumps=bumps,
        )
        has_changed = refreshed.group_epoch > group.group_epoch
        return refreshed._replace(records=[*member_records, *refreshed.records], has_changed=has_changed)

    def assign(
        self, group: ShareGroup, updated: ShareMember | None, subscription: Subscription
    ) -> dict[str, Partitions]:
        """Return the new targets of all members."""
        specs = self.member_specs(
            group, updated, lambda member, target: ShareMemberSpec(self._subscribed_topic_ids(member), target)
        )
        assignable = {
            topic_id: self._assignable(group, topic_id) for member in specs.values() for topic_id in member.topic_ids
        }
        targets = assign(ShareGroupSpec(specs, subscription.is_homogeneous, assignable))
        return {member_id: targets.get(member_id, NO_PARTITIONS) for member_id in specs}

    def _subscribed_topic_ids(self, member: ShareMember) -> list[bytes]:
        """Return the existing topics that the member subscribes to, in the order of Kafka's sets."""
        names = member.names_in_order
        return topic_ids_of(hash_order(names, string_hash, copied_capacity(len(names))), self.image())

    def _assignable(self, group: ShareGroup, topic_id: bytes) -> Sequence[int]:
        """Return the topic's partitions with state."""
        topic, state = self.image().topic_by_id(topic_id), group.known_state.initialized.get(topic_id)
        if topic is None or state is None:
            return ()
        return [number for number in range(len(topic.partitions)) if number in state.partitions]

    def next_step(self, change: Change, epoch: int, target: Partitions, *, has_changed: bool) -> ShareMember:
        """Return the member with its target; the same object if unchanged."""
        subscribed = self._subscribed_topic_ids(change.updated)
        return change.updated.towards(epoch, target, subscribed, subscription_changed=has_changed)

    def member_record(self, group_id: str, member: ShareMember) -> GroupRecord:
        """Return the record of a member's subscription."""
        return records.member_metadata(group_id, member)

    def assignment_record(self, group_id: str, member: ShareMember) -> GroupRecord:
        """Return the record of a member's epoch and assignment."""
        return records.current_assignment(group_id, member)

    def answer(
        self, change: Change, request: messages.ShareGroupHeartbeatRequest, step: Step[ShareMember]
    ) -> tuple[HeartbeatAnswer, list[GroupRecord]]:
        """Run step E, and return the response."""
        group, updated = change.group, step.member
        response = Response(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms(group.group_id),
        )
        joins = request.member_epoch == JOIN_GROUP_EPOCH
        if joins or request.subscribed_topic_names is not None or updated.assigned != change.member.assigned:
            response.assignment = _assignment(updated)
        config, state = self.parts.broker.config, group.known_state
        retry_ms = max(config.group_share_initialize_retry_interval_ms, config.offsets_commit_timeout_ms)
        missing = state.missing(step.subscription.topics, self.image(), self.now_ms(), retry_ms)
        if not missing:
            return HeartbeatAnswer(response), []
        record = records.state_partitions(group.group_id, state.with_initializing(missing), self.image())
        return HeartbeatAnswer(response, missing, step.subscription.group_epoch), [record]

    # -- leaving members ------------------------------------------------------------------------

    def leave_by_heartbeat(self, request: messages.ShareGroupHeartbeatRequest) -> Result[HeartbeatAnswer]:
        """Serve a member that leaves."""
        return self.leave(request.group_id, request.member_id)

    def leave(self, group_id: str, member_id: str) -> Result[HeartbeatAnswer]:
        """Remove a member. Raises `ApiError`: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID."""
        group = self.find(group_id)
        response = Response(member_id=member_id, member_epoch=LEAVE_GROUP_EPOCH)
        return self.fence(group, [group.member(member_id)], HeartbeatAnswer(response))

    def removal(self, group: ShareGroup, members: Sequence[ShareMember]) -> list[GroupRecord]:
        """Return the records that remove the members."""
        group_id = group.group_id
        metadata_hash = self.parts.hashes.of(group.topics_without(members), self.image())
        return [
            *(each for member in members for each in member_tombstones(self.kind, group_id, member.member_id)),
            epoch_record(self.kind, group_id, group.group_epoch + 1, metadata_hash),
        ]


def _assignment(member: ShareMember) -> messages.ShareGroupHeartbeatResponse.Assignment:
    return Response.Assignment(
        [Response.TopicPartitions(topic_id, list(numbers)) for topic_id, numbers in member.assigned_in_order]
    )


def check_heartbeat(request: messages.ShareGroupHeartbeatRequest) -> None:
    """Raise `ApiError` INVALID_REQUEST if the request is invalid.

    Mirrors `throwIfShareGroupHeartbeatRequestIsInvalid` of `GroupCoordinatorService`.
    """
    check_text(request.member_id, "MemberId can't be empty.")
    check_text(request.group_id, "GroupId can't be empty.")
    check_text(request.rack_id, "RackId can't be empty.")
    if request.member_epoch == 0:
        if not request.subscribed_topic_names:
            raise invalid_request("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_GROUP_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")
