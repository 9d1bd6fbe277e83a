"""The parts of a heartbeat response: tasks, endpoints for interactive queries, and statuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.streams.tasks import merged
from broker_sim.group.streams.topics.configured_topology import Status, endpoint_to_partitions
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.group.streams.streams_group import StreamsGroup
    from broker_sim.group.streams.topics.configured_topology import ConfiguredTopology
    from broker_sim.metadata import MetadataImage

Response = messages.StreamsGroupHeartbeatResponse


def assign_tasks(response: messages.StreamsGroupHeartbeatResponse, member: StreamsMember) -> None:
    """Set the member's tasks in the response."""
    assigned = member.assigned
    response.active_tasks = _task_ids(assigned.active)
    response.standby_tasks = _task_ids(assigned.standby)
    response.warmup_tasks = _task_ids(assigned.warmup)


def _task_ids(tasks: Mapping[str, Collection[int]]) -> list[messages.StreamsGroupHeartbeatResponse.TaskIds]:
    """Return the tasks, with subtopologies in the order of Kafka's table."""
    return [Response.TaskIds(subtopology, sorted(tasks[subtopology])) for subtopology in hash_order(tasks, string_hash)]


def set_endpoints(
    response: messages.StreamsGroupHeartbeatResponse,
    group: StreamsGroup,
    updated: StreamsMember,
    image: MetadataImage,
    replaced_id: str | None,
) -> None:
    """Set the partitions of all members with an endpoint for interactive queries.

    `updated` comes last; the static member `replaced_id`, which it replaces, is left out.

    As in Kafka, entries are cached until the group has the member's new state or a new topology. So the response
    to a heartbeat that changes only the endpoint has the old one. Raises `ApiError` UNKNOWN_SERVER_ERROR while
    source topics are missing.
    """
    excluded_ids = {updated.member_id, replaced_id}
    members = [group.members[member_id] for member_id in group.members.in_order() if member_id not in excluded_ids]
    response.partitions_by_user_endpoint = [
        endpoint for member in (*members, updated) if (endpoint := _endpoint(group, member, image)) is not None
    ]


def _endpoint(
    group: StreamsGroup, member: StreamsMember, image: MetadataImage
) -> messages.StreamsGroupHeartbeatResponse.EndpointToPartitions | None:
    if member.user_endpoint is None:
        return None
    endpoint = group.cached_endpoints.get(member.member_id)
    if endpoint is None:
        configured = group.configured_topology
        endpoint = group.cached_endpoints[member.member_id] = endpoint_to_partitions(
            Response.Endpoint(*member.user_endpoint),
            {name: frozenset(epochs) for name, epochs in member.assigned.active.items()},
            merged(member.assigned.standby, member.assigned.warmup),
            None if configured is None else configured.subtopologies,
            image,
        )
    return endpoint


def topology_statuses(
    group: StreamsGroup, member: StreamsMember
) -> list[messages.StreamsGroupHeartbeatResponse.Status]:
    """Return a status if the member's topology is older than the group's."""
    epoch, topology = member.topology_epoch, group.topology
    if topology is None or epoch >= topology.topology_epoch:
        return []
    text = f"The member's topology epoch {epoch} is behind the group's topology epoch {topology.topology_epoch}."
    return [Response.Status(Status.STALE_TOPOLOGY, text)]


def missing_tags(tags: Sequence[str], member: StreamsMember) -> list[messages.StreamsGroupHeartbeatResponse.Status]:
    """Return a status if the member lacks required client tags; as in Kafka, no assignor uses them."""
    missing = [tag for tag in tags if tag not in member.client_tags]
    if not missing:
        return []
    text = (
        f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. "
        "Configure them via 'client.tag.<tagKey>' in your Streams config."
    )
    return [Response.Status(Status.MISSING_CLIENT_TAGS, text)]


def group_statuses(
    group: StreamsGroup, configured: ConfiguredTopology
) -> list[messages.StreamsGroupHeartbeatResponse.Status]:
    """Return statuses of the whole group: missing topics, and a requested shutdown."""
    statuses = []
    if configured.error is not None:
        statuses.append(Response.Status(configured.error.status, str(configured.error)))
    requester = group.shutdown_request_member_id
    if requester is not None:
        text = (
            f"Streams group member {requester} encountered a fatal error and requested a shutdown for "
            "the entire application."
        )
        statuses.append(Response.Status(Status.SHUTDOWN_APPLICATION, text))
    return statuses
