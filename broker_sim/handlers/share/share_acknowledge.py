"""ShareAcknowledge (key 79), versions 1-2; mirrors `KafkaApis.handleShareAcknowledgeRequest`.

Behaviour:
* answered once the share coordinator has written the changes
* the first request of a session cannot acknowledge; the last one ends the session and releases all other records
* with an authorizer, a request with a topic that does not exist fails with UNKNOWN_SERVER_ERROR, as in Kafka
* a partition with an invalid batch is answered with an error and is not changed

Version notes: 2 adds the renewal of locks (KIP-1222) and the duration of locks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.fetch_session import FINAL_EPOCH
from broker_sim.handlers.share.acknowledgements import acknowledge, named_partitions
from broker_sim.handlers.share.checks import denied_topics, member_error
from broker_sim.handlers.support.partition_errors import HINTED_ERRORS, LeaderHints
from broker_sim.metadata.topic_partition import by_topic
from broker_sim.protocol import messages
from broker_sim.share.partition.acknowledgement import FailedRequestError
from broker_sim.share.session.share_session import ShareSessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata.topic_partition import TopicIdPartition


def handle_share_acknowledge(
    request: messages.ShareAcknowledgeRequest,
    context: RequestContext,
    respond: Callable[[messages.ShareAcknowledgeResponse], None],
) -> None:
    """Acknowledge a member's records."""
    manager = context.broker.share_partitions
    key = ShareSessionKey(request.group_id or "", request.member_id or "")
    error_code = member_error(context, request.group_id, request.member_id)
    acknowledged = dict(named_partitions(request, context))
    denied: AbstractSet[str] = frozenset()
    if not error_code:
        try:
            manager.sessions.acknowledge_update(key, request.share_session_epoch)
            denied = denied_topics(context, acknowledged)
        except ApiError as error:
            error_code = error.error_code
    if error_code:
        respond(messages.ShareAcknowledgeResponse(error_code=error_code))
        return

    def done(errors: Mapping[TopicIdPartition, ApiError | None]) -> None:
        if request.share_session_epoch == FINAL_EPOCH:
            manager.release_session(key)
        respond(_response(context, key.group_id, errors))

    try:
        acknowledge(request, context, acknowledged, denied, done)
    except FailedRequestError:
        respond(messages.ShareAcknowledgeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))


def _response(
    context: RequestContext, group_id: str, errors: Mapping[TopicIdPartition, ApiError | None]
) -> messages.ShareAcknowledgeResponse:
    """Answer each partition, with the leaders of those that this broker does not lead."""
    response = messages.ShareAcknowledgeResponse
    hints = LeaderHints(context.broker.image, context.listener)

    def answer(partition: TopicIdPartition, error: ApiError | None) -> messages.ShareAcknowledgeResponse.PartitionData:
        data = response.PartitionData(partition.partition)
        if error is not None:
            data.error_code, data.error_message = error.error_code, error.error_message
            if error.error_code in HINTED_ERRORS:
                hints.add(partition.topic_partition, data.current_leader)
        return data

    topics = by_topic((partition.topic_id, answer(partition, error)) for partition, error in errors.items())
    settings = context.broker.share_partitions.settings
    return response(
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout_ms=settings.record_lock_duration_ms(group_id),
        responses=[response.ShareAcknowledgeTopicResponse(*topic) for topic in topics.items()],
        node_endpoints=[response.NodeEndpoint(*endpoint) for endpoint in hints.endpoints()],
    )
