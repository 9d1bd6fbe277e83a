"""The consumer groups of one shard: their part of the steps of `AssignedGroups`.

Mirrors the consumer groups' part of `GroupMetadataManager` and `ConsumerTargetAssignmentBuilder`. Members
subscribe to topics by name and by regular expression, may be static, and may use the classic protocol
(`ClassicMembers`). A group with only classic members left is downgraded, if the migration policy allows it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from broker_sim.coordinator.result import Result
from broker_sim.group import record_messages
from broker_sim.group.consumer import records
from broker_sim.group.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec, offered_assignors
from broker_sim.group.consumer.consumer_group import ConsumerGroup, describe_group
from broker_sim.group.consumer.current_assignment import CurrentAssignmentBuilder
from broker_sim.group.consumer.member import ConsumerMember
from broker_sim.group.consumer.records import ResolvedRegex
from broker_sim.group.consumer.requests import (
    is_full,
    owned_partitions,
    owns_only_assigned,
)
from broker_sim.group.consumer.subscription import RegexChange, Regexes, subscribed_topics
from broker_sim.group.group import CLASSIC, NO_TIMEOUT
from broker_sim.group.modern.assigned_group import JOIN_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH
from broker_sim.group.modern.assigned_groups import (
    AssignedGroups,
    MemberChange,
    Step,
    Subscription,
    new_member_id,
    newer,
)
from broker_sim.group.modern.assignment import NO_PARTITIONS, Partitions, epochs_in_order, topic_ids_of
from broker_sim.group.modern.records import epoch_record, member_tombstones
from broker_sim.group.modern.static_members import joining_member, known_member
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from broker_sim.group.group import Group, GroupClient
    from broker_sim.group.modern.assigned_groups import ShardParts
    from broker_sim.group.modern.assignment import Epochs
    from broker_sim.group.records import GroupRecord
    from broker_sim.metadata import ImageChanges, MetadataImage

    Change = MemberChange[ConsumerGroup, ConsumerMember, Mapping[bytes, Sequence[int]] | None]
    """A change whose report has the partitions that the member owns; None without a report."""

R = TypeVar("R")
Response = messages.ConsumerGroupHeartbeatResponse


class Conversions(Protocol):
    """Converts groups between the protocols; see `broker_sim.group.migration`."""

    def upgrade(self, group: Group) -> tuple[ConsumerGroup, list[GroupRecord]]:
        """Convert a classic group with members; return the consumer group and the records of the conversion."""

    def must_downgrade(self, group: ConsumerGroup, leaving: Collection[ConsumerMember]) -> bool:
        """Return whether the group must and may be downgraded when these members leave."""

    def must_downgrade_for(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Return whether the group must be downgraded when a classic member replaces this static member."""

    def downgrade_without(self, group: ConsumerGroup, leaving: Collection[ConsumerMember], response: R) -> Result[R]:
        """Downgrade to a classic group of the remaining members, which rebalances."""

    def downgrade_with(
        self, group: ConsumerGroup, replaced: ConsumerMember, joining: ConsumerMember, response: R, *, is_stale: bool
    ) -> Result[R]:
        """Downgrade to a classic group in which `joining` replaces a static member."""


class ConsumerGroups(
    AssignedGroups[
        ConsumerGroup,
        ConsumerMember,
        Partitions,
        messages.ConsumerGroupHeartbeatRequest,
        messages.ConsumerGroupHeartbeatResponse,
    ]
):
    """Creates, updates and replays the consumer groups of one shard."""

    group_class = ConsumerGroup

    def __init__(self, parts: ShardParts, conversions: Conversions) -> None:
        super().__init__(parts)
        self.conversions = conversions
        self._regexes = Regexes(parts, self.find)
        self._known_topics = self.image().topic_names
        self._default_assignor = offered_assignors(parts.broker.config)[0]

    # -- groups ---------------------------------------------------------------------------------

    def find_or_create(self, group_id: str, *, creates: bool) -> tuple[ConsumerGroup, list[GroupRecord]]:
        """Return the group; upgrade a classic group with members, if allowed. See `AssignedGroups`."""
        group = self.parts.groups.get(group_id)
        if group is None or not creates or group.group_type != CLASSIC or group.is_empty:
            return super().find_or_create(group_id, creates=creates)
        upgraded, removal = self.conversions.upgrade(group)
        # If the records cannot be written, these sessions expire without consequences. Equal ones expire in the
        # order in which they start.
        for member_id in upgraded.members.in_order():
            member = upgraded.members[member_id]
            if member.classic is not None:
                self.keep_alive(group_id, member, member.classic.session_timeout_ms)
        return upgraded, removal

    def replay_own(self, group: ConsumerGroup, key: Any, value: Any) -> None:
        """Apply the record of a regular expression, or of subscription metadata from before Kafka 4.1."""
        if isinstance(key, record_messages.ConsumerGroupRegularExpressionKey):
            resolved = value and ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
            group.update_regex(key.regular_expression, resolved)
        else:
            group.has_subscription_metadata_record = value is not None

    def on_image(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Have regular expressions resolved again if there are new topics; mirrors `onMetadataUpdate`."""
        old_topics, self._known_topics = self._known_topics, image.topic_names
        if any(topic.topic_id not in old_topics for _, topic, _ in changes.partitions):
            self._regexes.topics_created(image)

    def describe(self, group_id: str) -> messages.ConsumerGroupDescribeResponse.DescribedGroup:
        """Return the committed state of a group. Raises `ApiError` GROUP_ID_NOT_FOUND."""
        return describe_group(self.find_committed(group_id), self._default_assignor, self.image())

    # -- the steps of a heartbeat ---------------------------------------------------------------

    def update_from_request(
        self, group: ConsumerGroup, request: messages.ConsumerGroupHeartbeatRequest, client: GroupClient
    ) -> tuple[Change, list[GroupRecord]]:
        """Run step A. Also raises `ApiError` UNRELEASED_INSTANCE_ID and FENCED_INSTANCE_ID."""
        owned = owned_partitions(request)
        member_id = request.member_id or new_member_id(self.parts.broker.random)
        replacement: list[GroupRecord] = []
        if request.member_epoch == JOIN_GROUP_EPOCH:
            current = group.static_member(request.instance_id)
            moves_on = current is not None and current.uses_classic_protocol
            member, replacement = joining_member(self, group, member_id, request.instance_id, displaces=moves_on)
        else:
            member = known_member(group, member_id, request.instance_id)
            self.check_epoch(member, request.member_epoch, lost_response=owns_only_assigned(member, owned))
        names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
        updated = replace(
            member if names is None else member.with_topic_names(names),
            instance_id=newer(request.instance_id, member.instance_id),
            rack_id=newer(request.rack_id, member.rack_id),
            rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms,
            server_assignor=newer(request.server_assignor, member.server_assignor),
            subscribed_topic_regex=newer(request.subscribed_topic_regex, member.subscribed_topic_regex),
            client_id=client.client_id,
            client_host=client.client_host,
            classic=None,
        )
        return MemberChange(group, member, updated, client, owned), replacement

    def subscribe(self, change: Change) -> Subscription:
        """Run step B. Raises `ApiError` INVALID_REGULAR_EXPRESSION."""
        group, member, updated = change.group, change.member, change.updated
        member_records = self.changed_member(change)
        names_changed = updated.subscribed_topic_names != member.subscribed_topic_names
        regex_change, regex_tombstones = self._regexes.update(change)
        member_records += regex_tombstones
        # Members of the classic protocol never wait for a regular expression.
        is_resolved = regex_change is RegexChange.UPDATED_AND_RESOLVED or (
            updated.uses_classic_protocol and regex_change is not RegexChange.NONE
        )
        bumps = names_changed or is_resolved
        has_changed = names_changed or regex_change is not RegexChange.NONE
        if not bumps and not group.has_metadata_expired:
            homogeneous = group.is_homogeneous
            return Subscription(group.group_epoch, member_records, has_changed, is_homogeneous=homogeneous)
        is_new = updated.member_id not in group.members and group.static_member_id(updated.instance_id) is None
        refreshed = self.refresh(
            group,
            group.topics_with(member, updated),
            regexes=group.regexes_with(member, updated),
            size=len(group.members) + is_new,
            bumps=bumps,
        )
        member_records += refreshed.records
        if group.has_subscription_metadata_record:
            member_records.append(records.subscription_metadata_tombstone(group.group_id))
        return refreshed._replace(records=member_records, has_changed=has_changed)

    def assign(
        self, group: ConsumerGroup, updated: ConsumerMember | None, subscription: Subscription
    ) -> dict[str, Partitions]:
        """Return the new targets of all members. Raises `AssignorError`."""
        assert updated is not None
        image = self.image()

        def spec(member: ConsumerMember, target: Partitions) -> MemberSpec:
            names = subscribed_topics(member, group.resolved)
            return MemberSpec(member.instance_id, topic_ids_of(names, image), len(names), target)

        replaced_id = group.static_member_id(updated.instance_id)
        specs = self.member_specs(group, updated, spec)
        partition_counts = {
            topic_id: len(image.topics[image.topic_names[topic_id]].partitions)
            for member in specs.values()
            for topic_id in member.topic_ids
        }
        old_member = group.members.get(updated.member_id if replaced_id is None else replaced_id)
        preferred = group.preferred_assignor_with(old_member, updated)
        assignor = ASSIGNORS[preferred or self._default_assignor]
        targets = assignor(GroupSpec(specs, subscription.is_homogeneous, partition_counts, group.inverted_target))
        return {member_id: targets.get(member_id, NO_PARTITIONS) for member_id in specs}

    def next_step(
        self,
        change: Change,
        epoch: int,
        target: Partitions,
        *,
        has_changed: bool,
    ) -> ConsumerMember:
        """Return the member after its next step towards the target; the same object if there is none."""
        group, member = change.group, change.updated
        names = subscribed_topics(member, group.resolved)
        builder = CurrentAssignmentBuilder(
            target_epoch=epoch,
            target=target,
            subscribed_topic_ids=frozenset(topic_ids_of(names, self.image())),
            subscribes_to_nothing=not names,
            subscription_changed=has_changed,
            partition_epoch=group.partition_epoch,
            owned=change.report,
        )
        return builder.build(member)

    def member_record(self, group_id: str, member: ConsumerMember) -> GroupRecord:
        """Return the record of a member's subscription."""
        return records.member_metadata(group_id, member)

    def assignment_record(self, group_id: str, member: ConsumerMember) -> GroupRecord:
        """Return the record of a member's epoch and assignment."""
        return records.current_assignment(group_id, member)

    def update_revocation_timeout(self, group_id: str, member: ConsumerMember) -> None:
        """Start the revocation timeout of a member; classic members have timers of their own."""
        if not member.uses_classic_protocol:
            super().update_revocation_timeout(group_id, member)

    def answer(
        self,
        change: Change,
        request: messages.ConsumerGroupHeartbeatRequest,
        step: Step[ConsumerMember],
    ) -> tuple[messages.ConsumerGroupHeartbeatResponse, list[GroupRecord]]:
        """Return the response, with the assignment if it has changed or the request is a full one."""
        updated = step.member
        response = Response(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms(change.group.group_id),
        )
        joins = request.member_epoch == JOIN_GROUP_EPOCH
        if joins or is_full(request) or updated.assigned != change.member.assigned:
            response.assignment = _assignment(updated.assigned)
        return response, []

    # -- leaving members ------------------------------------------------------------------------

    def leave_by_heartbeat(
        self, request: messages.ConsumerGroupHeartbeatRequest
    ) -> Result[messages.ConsumerGroupHeartbeatResponse]:
        """Serve a member that leaves permanently, or a static one that leaves temporarily (epoch -2)."""
        group = self.find(request.group_id)
        member = known_member(group, request.member_id, request.instance_id)
        if request.member_epoch == LEAVE_GROUP_STATIC_EPOCH:
            record = records.current_assignment(group.group_id, member.left_temporarily())
            return Result(Response(member_id=member.member_id, member_epoch=LEAVE_GROUP_STATIC_EPOCH), [record])
        response = Response(member_id=request.member_id, member_epoch=request.member_epoch)
        return self.fence(group, [member], response)

    def fence(self, group: ConsumerGroup, members: Sequence[ConsumerMember], response: R) -> Result[R]:
        """Remove the members; their timers are cancelled when the leader has the records.

        Raises `ApiError` GROUP_ID_NOT_FOUND if the group must be downgraded and cannot.
        """
        if members and self.conversions.must_downgrade(group, members):
            return self.conversions.downgrade_without(group, members, response)
        return super().fence(group, members, response)

    def removal(self, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> list[GroupRecord]:
        """Return the records that remove the members, and regular expressions without other subscribers."""
        group_id = group.group_id
        leaving: dict[str, int] = {}
        for member in members:
            if member.subscribed_topic_regex:
                regex = member.subscribed_topic_regex
                leaving[regex] = leaving.get(regex, 0) + 1
        unused = [regex for regex, count in leaving.items() if group.regexes.get(regex) == count]
        metadata_hash = self.parts.hashes.of(group.topics_without(members, unused), self.image())
        return [
            *(each for member in members for each in member_tombstones(self.kind, group_id, member.member_id)),
            *(records.regex_tombstone(group_id, regex) for regex in unused),
            epoch_record(self.kind, group_id, group.group_epoch + 1, metadata_hash),
        ]


def _assignment(assigned: Epochs) -> messages.ConsumerGroupHeartbeatResponse.Assignment:
    return Response.Assignment(
        [Response.TopicPartitions(topic, numbers) for topic, numbers in epochs_in_order(assigned)]
    )
