"""How the target of a share group is computed, and the records that it is written with.

Mirrors `TargetAssignmentBuilder.ShareTargetAssignmentBuilder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.modern.assignment import NO_PARTITIONS
from broker_sim.group.modern.topic_counts import topic_ids_of
from broker_sim.group.share import records
from broker_sim.group.share.assignors import ShareGroupSpec, ShareMemberSpec, assign
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable, copied_capacity, hash_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.group.modern.assignment import Partitions
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.share.member import ShareMember
    from broker_sim.group.share.share_group import ShareGroup
    from broker_sim.metadata import MetadataImage


def subscribed_topic_ids(member: ShareMember, image: MetadataImage) -> list[bytes]:
    """Return the existing topics that the member subscribes to, in the order of Kafka's sets."""
    names = member.names_in_order
    return topic_ids_of(hash_order(names, string_hash, copied_capacity(len(names))), image)


def compute_target(
    group: ShareGroup, updated: ShareMember, *, homogeneous: bool, image: MetadataImage, group_epoch: int, now_ms: int
) -> tuple[Partitions, list[GroupRecord]]:
    """Return the new target of the member `updated`, and the records of all that has changed.

    `updated` may be new to the group; `now_ms` is the wall clock.
    """
    members: HashTable[str, ShareMemberSpec] = HashTable(string_hash)
    for member_id in group.members.in_order():
        members.put(member_id, _spec(group, group.members[member_id], image))
    members.put(updated.member_id, _spec(group, updated, image))
    spec = ShareGroupSpec(
        members={member_id: members[member_id] for member_id in members.in_order()},
        homogeneous=homogeneous,
        assignable={
            topic_id: _assignable(group, topic_id, image)
            for member in members.values()
            for topic_id in member.topic_ids
        },
    )
    result = assign(spec)
    written = [
        records.target_assignment(group.group_id, member_id, target)
        for member_id, target in group.changed_targets(result, spec.members)
    ]
    written.append(records.target_assignment_metadata(group.group_id, group_epoch, now_ms))
    return result.get(updated.member_id, NO_PARTITIONS), written


def _spec(group: ShareGroup, member: ShareMember, image: MetadataImage) -> ShareMemberSpec:
    target = group.targets.get(member.member_id, NO_PARTITIONS)
    return ShareMemberSpec(subscribed_topic_ids(member, image), target)


def _assignable(group: ShareGroup, topic_id: bytes, image: MetadataImage) -> Sequence[int]:
    """Return the topic's partitions that have state."""
    topic, known = image.topic_by_id(topic_id), group.known_state.initialized.get(topic_id)
    if topic is None or known is None:
        return ()
    return [number for number in range(len(topic.partitions)) if number in known.partitions]
