"""Converts classic groups to records of `__consumer_offsets` and back.

Mirrors `GroupCoordinatorRecordHelpers.newGroupMetadataRecord` and the replay of `GroupMetadataValue`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group import record_messages
from broker_sim.group.classic.classic_group import EMPTY, STABLE, ClassicGroup
from broker_sim.group.classic.classic_member import ClassicMember, MemberProtocol
from broker_sim.group.group import NO_TIMEOUT
from broker_sim.group.records import GroupRecord
from broker_sim.protocol.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim_purgatory import Clock

Value = record_messages.GroupMetadataValue


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> GroupRecord:
    """Return the record of the group's current generation, with these assignments by member id."""
    members = [
        Value.MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol_name),
            assignment=assignments[member.member_id],
        )
        for member in group.members.values_in_order()
    ]
    timestamp_ms = group.state_timestamp_ms
    value = Value(
        protocol_type=group.protocol_type,
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=NO_TIMESTAMP if timestamp_ms is None else timestamp_ms,
        members=members,
    )
    return GroupRecord(record_messages.GroupMetadataKey(group.group_id), value)


def restored_group(group_id: str, value: record_messages.GroupMetadataValue, clock: Clock) -> ClassicGroup:
    """Return the group in a record: stable with its members, or empty.

    The record has only the chosen protocol of each member.
    """
    group = ClassicGroup(
        group_id,
        clock,
        state=STABLE if value.members else EMPTY,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
    )
    timestamp_ms = value.current_state_timestamp
    group.state_timestamp_ms = None if timestamp_ms == NO_TIMESTAMP else timestamp_ms
    for member in value.members:
        timeout_ms = member.rebalance_timeout
        group.add(
            ClassicMember(
                member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=(member.session_timeout if timeout_ms == NO_TIMEOUT else timeout_ms),
                session_timeout_ms=member.session_timeout,
                protocols=[MemberProtocol(value.protocol or "", bytes(member.subscription))],
                assignment=bytes(member.assignment),
            ),
            value.protocol_type,
        )
    group.update_subscribed_topics()
    return group
