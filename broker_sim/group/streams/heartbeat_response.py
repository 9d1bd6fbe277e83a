"""What the answer to a heartbeat tells a member: its tasks, whom to ask for state, and what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.streams.status import Status
from broker_sim.group.streams.topics import endpoint_to_partitions
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.group.streams.member_change import MemberChange
    from broker_sim.group.streams.streams_group import StreamsGroup
    from broker_sim.group.streams.topics import ConfiguredTopology
    from broker_sim.metadata import MetadataImage

__all__ = ["assign_tasks", "tell_endpoints", "tell_statuses"]

Response = messages.StreamsGroupHeartbeatResponse


def assign_tasks(response: messages.StreamsGroupHeartbeatResponse, member: StreamsMember) -> None:
    """Tell the member all its tasks."""
    assigned = member.assigned
    response.active_tasks = _task_ids(assigned.active)
    response.standby_tasks = _task_ids(assigned.standby)
    response.warmup_tasks = _task_ids(assigned.warmup)


def _task_ids(
    tasks: Mapping[str, Collection[int]],
) -> list[messages.StreamsGroupHeartbeatResponse.TaskIds]:
    """Return tasks with their subtopologies in the order of Kafka's table."""
    return [
        Response.TaskIds(subtopology, sorted(tasks[subtopology]))
        for subtopology in hash_order(tasks, string_hash)
    ]


def tell_endpoints(
    response: messages.StreamsGroupHeartbeatResponse,
    group: StreamsGroup,
    updated: StreamsMember,
    image: MetadataImage,
) -> None:
    """Tell which partitions the members have that can be asked for their state; `updated` comes last.

    Raises `ApiError` UNKNOWN_SERVER_ERROR while the source topics are missing.
    """
    members = [
        group.members[member_id]
        for member_id in group.members.in_order()
        if member_id != updated.member_id
    ]
    configured = group.configured_topology
    subtopologies = None if configured is None else configured.subtopologies
    response.partitions_by_user_endpoint = [
        endpoint_to_partitions(
            Response.Endpoint(*member.user_endpoint),
            {name: frozenset(epochs) for name, epochs in member.assigned.active.items()},
            member.assigned.standby,
            subtopologies,
            image,
        )
        for member in (*members, updated)
        if member.user_endpoint is not None
    ]


def tell_statuses(
    response: messages.StreamsGroupHeartbeatResponse,
    change: MemberChange,
    configured: ConfiguredTopology,
) -> None:
    """Tell what stands in the way of the group: its topics, or a member that wants all members to end."""
    if configured.error is not None:
        change.say(configured.error.status, str(configured.error))
    requester = change.group.shutdown_request_member_id
    if requester is not None:
        change.say(
            Status.SHUTDOWN_APPLICATION,
            f"Streams group member {requester} encountered a fatal error and requested a shutdown for "
            "the entire application.",
        )
    response.status = change.statuses
