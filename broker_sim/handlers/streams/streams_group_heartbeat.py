"""StreamsGroupHeartbeat (key 88), versions 0 and 1; mirrors `KafkaApis.handleStreamsGroupHeartbeat`.

Behaviour:
* a member chooses its id: it joins with epoch 0 and its topology, stays with the epoch of the last response, leaves
  with -1; from Kafka 4.4 on a static member leaves temporarily with -2, and members report their task offsets
* the client must be allowed to read the group and to describe all topics of the topology; Kafka's internal topics
  are refused
* the coordinator assigns the tasks, see `broker_sim.group.modern.assigned_groups`
* missing internal topics are created for a client with CREATE; the response does not wait for that,
  and has the error of the last failed attempt
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.streams.topics.configured_topology import Status
from broker_sim.handlers.support.authorization import authorization_error, is_authorized, unauthorized_names
from broker_sim.handlers.support.groups import group_client, has_streams_groups
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType
from broker_sim.metadata.topic_name import invalid_topic_name, is_internal_topic
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.group.streams.streams_groups import StreamsGroupHeartbeatResult
    from broker_sim.handlers.context import RequestContext

Response = messages.StreamsGroupHeartbeatResponse
SHOWN_ERRORS: Final = 3
"""Maximum number of topics whose failed creation is described in a response."""


def handle_streams_group_heartbeat(
    request: messages.StreamsGroupHeartbeatRequest,
    context: RequestContext,
    respond: Callable[[messages.StreamsGroupHeartbeatResponse], None],
) -> None:
    """Serve a member of a streams group."""

    def fail(error: ApiError) -> None:
        respond(Response(error_code=error.error_code, error_message=error.error_message))

    def answer(answer: StreamsGroupHeartbeatResult) -> None:
        if answer.topics_to_create:
            _create_topics(request.group_id, answer, context)
        respond(answer.response)

    try:
        _check(request, context)
    except ApiError as error:
        fail(error)
        return
    context.broker.groups.streams.heartbeat(request, group_client(context), answer, fail)


def _check(request: messages.StreamsGroupHeartbeatRequest, context: RequestContext) -> None:
    """Raise `ApiError` if the client may not be this member."""
    if not has_streams_groups(context):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    read, describe = AclOperation.READ, AclOperation.DESCRIBE
    denial = authorization_error(context, read, ResourceType.GROUP, request.group_id)
    if denial:
        raise ApiError(denial)
    if request.topology is None:
        return
    names = list(dict.fromkeys(_topic_names(request.topology)))
    prohibited = [name for name in names if is_internal_topic(name)]
    if prohibited:
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited.",
        )
    invalid = [name for name in names if invalid_topic_name(name) is not None]
    if invalid:
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY, f"Topic names {','.join(invalid)} are not valid topic names."
        )
    if unauthorized_names(context, describe, ResourceType.TOPIC, names):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _topic_names(topology: messages.StreamsGroupHeartbeatRequest.Topology) -> Iterable[str]:
    for subtopology in topology.subtopologies:
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        yield from (topic.name for topic in subtopology.repartition_source_topics)
        yield from (topic.name for topic in subtopology.state_changelog_topics)


def _create_topics(group_id: str, answer: StreamsGroupHeartbeatResult, context: RequestContext) -> None:
    """Begin to create the missing topics; add denials and failures to the status details."""
    names = list(answer.topics_to_create)
    create = AclOperation.CREATE
    denied: list[str] = []
    if not is_authorized(context, create, ResourceType.CLUSTER, CLUSTER_NAME, logs_denial=False):
        refused = unauthorized_names(context, create, ResourceType.TOPIC, names)
        denied = [name for name in names if name in refused]
    if denied:
        _add_detail(answer, f"Unauthorized to CREATE on topics {', '.join(denied)}.")
        return
    interval_ms = context.broker.groups.streams.heartbeat_interval_ms(group_id)
    errors = context.broker.create_internal_topics(answer.topics_to_create, keeps_errors_ms=2 * interval_ms)
    if errors:
        failures = ", ".join(f"{name} ({text})" for name, text in list(errors.items())[:SHOWN_ERRORS])
        more = len(errors) - SHOWN_ERRORS
        _add_detail(answer, f"Creation failed: {failures}{f' and {more} more' if more > 0 else ''}.")


def _add_detail(answer: StreamsGroupHeartbeatResult, detail: str) -> None:
    """Append to the status detail about missing internal topics."""
    statuses = answer.response.status
    assert statuses is not None
    for status in statuses:
        if status.status_code == Status.MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; {detail}"
