"""Online migration of groups between the classic and the consumer protocol (KIP-848).

Mirrors `convertToConsumerGroup`, `convertToClassicGroup` and the checks around them in
`GroupMetadataManager`, `ConsumerGroup.fromClassicGroup` and `ClassicGroup.fromConsumerGroup`. The allowed
directions are configured by `group.consumer.migration.policy`.

Upgrade: when the first member of the consumer protocol joins a classic group, its members are converted, with
their assignments as targets and the generation as epoch; members with parked requests are told to rejoin.
Downgrade: when the last member of the consumer protocol leaves, the others become a classic group, with their
targets as assignments and the group epoch as generation, and they rebalance.

One batch of records deletes the group of the old type and creates the one of the new type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.classic.classic_group import STABLE, ClassicGroup
from broker_sim.group.classic.classic_member import ClassicMember, MemberProtocol
from broker_sim.group.classic.group_metadata import group_record
from broker_sim.group.consumer import records
from broker_sim.group.consumer.consumer_group import ConsumerGroup
from broker_sim.group.consumer.member import ClassicMetadata, ConsumerMember
from broker_sim.group.consumer_protocol import (
    PROTOCOL_TYPE,
    MalformedConsumerProtocolError,
    encode_assignment,
    read_assignment,
    read_subscription,
)
from broker_sim.group.modern.assignment import NO_PARTITIONS, target_from_record
from broker_sim.group.modern.records import epoch_record, target_epoch_record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.group.classic.rebalance import Rebalance
    from broker_sim.group.group import Group
    from broker_sim.group.group_timeline import GroupTimeline
    from broker_sim.group.modern.assignment import Partitions
    from broker_sim.group.modern.metadata_hash import TopicHashes
    from broker_sim.group.records import GroupRecord

R = TypeVar("R")
UPGRADES = frozenset({"bidirectional", "upgrade"})
DOWNGRADES = frozenset({"bidirectional", "downgrade"})


class CustomAssignorError(ValueError):
    """An assignment has user data of a custom assignor, which server-side assignors do not support."""


class Migration:
    """Converts the groups of a shard; the only class that knows both types. See `Conversions`."""

    def __init__(self, broker: BrokerContext, groups: GroupTimeline, rebalance: Rebalance, hashes: TopicHashes) -> None:
        self._broker = broker
        self._config = broker.config
        self._groups = groups
        self._rebalance = rebalance
        self._hashes = hashes

    # -- to the consumer protocol -----------------------------------------------------------------

    def upgrade(self, group: Group) -> tuple[ConsumerGroup, list[GroupRecord]]:
        """Convert a classic group with members; return the consumer group and the records of the conversion.

        Replaying the records adds it to the shard. Parked joins and syncs are answered at once. Raises `ApiError`:
        GROUP_ID_NOT_FOUND if the group cannot be converted, UNKNOWN_SERVER_ERROR before its first generation.
        """
        assert isinstance(group, ClassicGroup)
        self._check_upgrade(group)
        self._rebalance.answer_all(group, ErrorCode.REBALANCE_IN_PROGRESS)
        try:
            members = [self._consumer_member(group, member) for member in group.members.values_in_order()]
        except MalformedConsumerProtocolError as error:
            raise _cannot_upgrade(group, "the embedded consumer protocol is malformed") from error
        except CustomAssignorError as error:
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot upgrade classic group {group.group_id} to consumer group because an "
                "unsupported custom assignor is in use. Please refer to the documentation or switch "
                "to a default assignor before re-attempting the upgrade.",
            ) from error
        upgraded = ConsumerGroup(group.group_id)
        upgraded.group_epoch = upgraded.assignment_epoch = group.generation_id
        for member, target in members:
            upgraded.update_target(member.member_id, target)
            upgraded.update_member(member)
        image = self._broker.image()
        upgraded.metadata_hash = self._hashes.of(upgraded.topics, image)
        return upgraded, [*group.tombstones(), *_records_of(upgraded)]

    def _check_upgrade(self, group: ClassicGroup) -> None:
        if self._config.group_consumer_migration_policy not in UPGRADES:
            raise _cannot_upgrade(group, "online upgrade is disabled")
        if not group.uses_consumer_protocol:
            raise _cannot_upgrade(group, "the group does not use the consumer embedded protocol")
        if len(group.members) > self._config.group_consumer_max_size:
            raise _cannot_upgrade(group, "the group size exceeds the consumer group maximum size")

    def _consumer_member(self, group: ClassicGroup, member: ClassicMember) -> tuple[ConsumerMember, Partitions]:
        """Return the converted member and its target, which is its last assignment."""
        target: Partitions = NO_PARTITIONS
        if member.assignment:
            assignment = read_assignment(member.assignment)
            if assignment.user_data:
                raise CustomAssignorError
            topics = self._broker.image().topics
            target = target_from_record(
                (topics[assigned.topic].topic_id, assigned.partitions)
                for assigned in assignment.assigned_partitions
                if assigned.topic in topics
            )
        metadata = dict(member.protocols).get(group.protocol_name or "")
        if metadata is None:
            # The group has no generation yet, or the member does not support the chosen protocol.
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        subscription = read_subscription(metadata)
        epoch = group.generation_id
        new = ConsumerMember(
            member.member_id,
            member_epoch=epoch,
            previous_member_epoch=epoch,
            instance_id=member.group_instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            assigned={topic_id: dict.fromkeys(of, epoch) for topic_id, of in target.items()},
            classic=ClassicMetadata(member.session_timeout_ms, tuple((p.name, p.metadata) for p in member.protocols)),
        )
        return new.with_topic_names(subscription.topics), target

    # -- to the classic protocol ------------------------------------------------------------------

    def must_downgrade(self, group: ConsumerGroup, leaving: Collection[ConsumerMember]) -> bool:
        """Return whether the group must and may be downgraded when these members leave."""
        remaining_count = len(group.members) - len(leaving)
        classic_count = group.classic_members - sum(m.uses_classic_protocol for m in leaving)
        return classic_count == remaining_count > 0 and self._may_downgrade(remaining_count)

    def must_downgrade_for(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Return whether the group must and may be downgraded when a classic member replaces this static member.

        That is so if it is the last member of the consumer protocol.
        """
        size = len(group.members)
        is_last = group.classic_members == size - 1 and not replaced.uses_classic_protocol
        return is_last and self._may_downgrade(size)

    def _may_downgrade(self, size: int) -> bool:
        policy = self._config.group_consumer_migration_policy
        return policy in DOWNGRADES and size <= self._config.group_max_size

    def downgrade_without(self, group: ConsumerGroup, leaving: Collection[ConsumerMember], response: R) -> Result[R]:
        """Downgrade to a classic group of the remaining members, which rebalances.

        Raises `ApiError` GROUP_ID_NOT_FOUND if a member's metadata cannot be parsed.
        """
        leaving_ids = {member.member_id for member in leaving}
        all_members = (group.members[member_id] for member_id in group.members.in_order())
        members = [(m, m.member_id) for m in all_members if m.member_id not in leaving_ids]
        return self._downgrade(group, members, group.tombstones(), response, rebalances=True)

    def downgrade_with(
        self,
        group: ConsumerGroup,
        replaced: ConsumerMember,
        joining: ConsumerMember,
        response: R,
        *,
        is_stale: bool,
    ) -> Result[R]:
        """Downgrade to a classic group in which `joining`, a classic member, replaces a static member.

        It gets the replaced member's target. The group rebalances only if the targets are stale.
        """
        others = (group.members[member_id] for member_id in group.members.in_order())
        members = [(m, m.member_id) for m in others if m.instance_id != joining.instance_id]
        members.append((joining, replaced.member_id))
        tombstones = group.tombstones({replaced.member_id: joining.member_id})
        return self._downgrade(group, members, tombstones, response, rebalances=is_stale)

    def _downgrade(
        self,
        group: ConsumerGroup,
        members: Iterable[tuple[ConsumerMember, str]],
        tombstones: Sequence[GroupRecord],
        response: R,
        *,
        rebalances: bool,
    ) -> Result[R]:
        """Return the records of the classic group; each member comes with the member id whose target it gets."""
        classic = self._classic_group(group, members)
        assignments = {member.member_id: member.assignment for member in classic.members.values()}

        def appended() -> None:
            self._groups.put(group.group_id, classic)
            self._rebalance.start_sessions(classic)
            if rebalances:
                self._rebalance.prepare(classic, "the group moves from the consumer to the classic protocol")

        return Result(
            response,
            [*tombstones, group_record(classic, assignments)],
            replays=False,
            on_appended=appended,
        )

    def _classic_group(self, group: ConsumerGroup, members: Iterable[tuple[ConsumerMember, str]]) -> ClassicGroup:
        classic = ClassicGroup(
            group.group_id,
            self._broker.clock,
            state=STABLE,
            generation_id=group.group_epoch,
            protocol_type=PROTOCOL_TYPE,
        )
        targets = {}
        for member, target_id in members:
            classic.add(_classic_member(member), PROTOCOL_TYPE)
            targets[member.member_id] = group.targets.get(target_id, NO_PARTITIONS)
        classic.protocol_name = classic.select_protocol()
        classic.update_subscribed_topics()
        names = self._broker.image().topic_names
        for converted in classic.members.values():
            target = targets[converted.member_id]
            try:
                converted.assignment = encode_assignment(
                    [(names[topic_id], of) for topic_id, of in target.items() if topic_id in names],
                    converted.metadata(classic.protocol_name),
                )
            except MalformedConsumerProtocolError as error:
                raise ApiError(
                    ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot downgrade the classic group {group.group_id}: {error}."
                ) from error
        return classic


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocols=[MemberProtocol(*protocol) for protocol in member.classic.protocols],
    )


def _records_of(group: ConsumerGroup) -> list[GroupRecord]:
    """Return the records that create the group; mirrors `createConsumerGroupRecords`."""
    group_id = group.group_id
    members = [group.members[member_id] for member_id in group.members.in_order()]
    return [
        *(records.member_metadata(group_id, member) for member in members),
        epoch_record(group.kind, group_id, group.group_epoch, group.metadata_hash),
        *(group.target_record(member.member_id, group.targets[member.member_id]) for member in members),
        target_epoch_record(group.kind, group_id, group.assignment_epoch, group.assignment_timestamp_ms),
        *(records.current_assignment(group_id, member) for member in members),
    ]


def _cannot_upgrade(group: ClassicGroup, why: str) -> ApiError:
    """Return the error for a classic group that cannot be upgraded."""
    return ApiError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group.group_id} to consumer group because {why}."
    )
