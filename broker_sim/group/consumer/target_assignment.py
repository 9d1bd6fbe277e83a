"""How the target of a group is computed, and the records that it is written with.

Mirrors `TargetAssignmentBuilder.ConsumerTargetAssignmentBuilder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.consumer import records
from broker_sim.group.consumer.assignors import GroupSpec, MemberSpec
from broker_sim.group.consumer.subscription import subscribed_topics
from broker_sim.group.modern.assignment import NO_PARTITIONS
from broker_sim.group.modern.topic_counts import topic_ids_of
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable

if TYPE_CHECKING:
    from broker_sim.group.consumer.assignors import Assignor
    from broker_sim.group.consumer.consumer_group import ConsumerGroup
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.modern.assignment import Partitions
    from broker_sim.group.records import GroupRecord
    from broker_sim.metadata import MetadataImage


def compute_target(
    group: ConsumerGroup,
    updated: ConsumerMember,
    *,
    homogeneous: bool,
    assignor: Assignor,
    image: MetadataImage,
    group_epoch: int,
    now_ms: int,
) -> tuple[Partitions, list[GroupRecord]]:
    """Return the new target of the member `updated`, and the records of all that has changed.

    `updated` may be new to the group, or replace a static member. `now_ms` is the wall clock. Raises
    `AssignorError`.
    """
    members = _members(group, updated, image)
    spec = GroupSpec(
        members={member_id: members[member_id] for member_id in members.in_order()},
        homogeneous=homogeneous,
        partition_counts={
            topic_id: len(image.topics[image.topic_names[topic_id]].partitions)
            for member in members.values()
            for topic_id in member.topic_ids
        },
        assigned=group.inverted_target,
    )
    result = assignor(spec)
    written = [
        records.target_assignment(group.group_id, member_id, target)
        for member_id, target in group.changed_targets(result, spec.members)
    ]
    written.append(records.target_assignment_metadata(group.group_id, group_epoch, now_ms))
    return result.get(updated.member_id, NO_PARTITIONS), written


def _members(group: ConsumerGroup, updated: ConsumerMember, image: MetadataImage) -> HashTable[str, MemberSpec]:
    """Return the members with the changed one in Kafka's table, from which none is removed early."""
    specs: HashTable[str, MemberSpec] = HashTable(string_hash)
    for member_id in group.members.in_order():
        target = group.targets.get(member_id, NO_PARTITIONS)
        specs.put(member_id, _spec(group, group.members[member_id], target, image))
    target = group.targets.get(updated.member_id, NO_PARTITIONS)
    replaced = group.static_member_id(updated.instance_id)
    if replaced is not None and replaced != updated.member_id:
        target = group.targets.get(replaced, NO_PARTITIONS)
    specs.put(updated.member_id, _spec(group, updated, target, image))
    if replaced is not None and replaced != updated.member_id:
        specs.pop(replaced, None)
    return specs


def _spec(group: ConsumerGroup, member: ConsumerMember, target: Partitions, image: MetadataImage) -> MemberSpec:
    names = subscribed_topics(member, group.resolved)
    return MemberSpec(member.instance_id, topic_ids_of(names, image), len(names), target)
