"""How the target of a streams group is computed, and the records that it is written with.

Mirrors `streams.TargetAssignmentBuilder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.streams import records
from broker_sim.group.streams.assignors import GroupSpec, MemberSpec, assign
from broker_sim.group.streams.tasks import NO_TASKS
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.group.records import GroupRecord
    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.group.streams.streams_group import StreamsGroup
    from broker_sim.group.streams.tasks import TasksTuple
    from broker_sim.group.streams.topics import ConfiguredTopology


def compute_target(
    group: StreamsGroup,
    updated: StreamsMember | None,
    *,
    topology: ConfiguredTopology,
    configs: Mapping[str, str],
    group_epoch: int,
    now_ms: int,
) -> tuple[TasksTuple, list[GroupRecord]]:
    """Return the new target of the member `updated`, and the records of all that has changed.

    `updated` may be new to the group; without one the first result is empty. Nobody gets a task before all
    topics are there. `now_ms` is the wall clock. Raises `TaskAssignorError`.
    """
    members: HashTable[str, MemberSpec] = HashTable(string_hash)
    for member_id in group.members.in_order():
        members.put(member_id, _spec(group, group.members[member_id]))
    if updated is not None:
        members.put(updated.member_id, _spec(group, updated))
    spec = GroupSpec(members={member_id: members[member_id] for member_id in members.in_order()}, configs=configs)
    result = assign(spec, topology.tasks()) if topology.is_ready else {}
    written = []
    for member_id in spec.members:
        target = result.get(member_id, NO_TASKS)
        if target != group.targets.get(member_id):
            written.append(records.target_assignment(group.group_id, member_id, target))
    written.append(records.target_assignment_metadata(group.group_id, group_epoch, now_ms))
    own = NO_TASKS if updated is None else result.get(updated.member_id, NO_TASKS)
    return own, written


def _spec(group: StreamsGroup, member: StreamsMember) -> MemberSpec:
    return MemberSpec(member.process_id, group.targets.get(member.member_id, NO_TASKS))
