"""How a streams group is described; mirrors `StreamsGroup.asDescribedGroup`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.java_text import text_order
from broker_sim.group.streams.tasks import NO_TASKS
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.group.streams.streams_group import StreamsGroup
    from broker_sim.group.streams.tasks import AssignedTasks, TasksTuple

Response = messages.StreamsGroupDescribeResponse


def describe_group(group: StreamsGroup) -> messages.StreamsGroupDescribeResponse.DescribedGroup:
    """Return what StreamsGroupDescribe tells of a group."""
    configured, topology = group.configured_topology, group.topology
    assert topology is not None, "a group has a topology from its first record on"
    return Response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=(configured.describe() if configured is not None and configured.is_ready else topology.describe()),
        members=[
            _describe_member(group.members[member_id], group.targets.get(member_id, NO_TASKS))
            for member_id in group.members.in_order()
        ],
    )


def _describe_member(member: StreamsMember, target: TasksTuple) -> messages.StreamsGroupDescribeResponse.Member:
    endpoint = member.user_endpoint
    return Response.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Response.Endpoint(*endpoint),
        client_tags=[
            Response.KeyValue(key, member.client_tags[key]) for key in hash_order(member.client_tags, string_hash)
        ],
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(target),
    )


def _assignment(tasks: AssignedTasks | TasksTuple) -> messages.StreamsGroupDescribeResponse.Assignment:
    return Response.Assignment(_task_ids(tasks.active), _task_ids(tasks.standby), _task_ids(tasks.warmup))


def _task_ids(tasks: Mapping[str, Collection[int]]) -> list[messages.StreamsGroupDescribeResponse.TaskIds]:
    return [Response.TaskIds(subtopology, sorted(tasks[subtopology])) for subtopology in sorted(tasks, key=text_order)]
