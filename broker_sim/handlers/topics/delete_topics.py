"""DeleteTopics (key 20), versions 0-6; mirrors `ControllerApis.deleteTopics`.

Behaviour:
* each topic succeeds or fails alone
* `delete.topic.enable=false` refuses the whole request

Version notes: 3 has TOPIC_DELETION_DISABLED, 4 is flexible, 5 adds error messages and may be throttled, 6 can
identify topics by id (KIP-516).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.handlers.support.authorization import is_authorized
from broker_sim.handlers.support.forwarding import forward, mutation_quota
from broker_sim.handlers.support.partition_errors import injected_error
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.controller import DeleteTopicResult, Outcome
    from broker_sim.handlers.context import RequestContext

DELETION_DISABLED_VERSION = 3
STRICT_QUOTA_VERSION = 5
Topic = messages.DeleteTopicsRequest.DeleteTopicState
TopicResult = messages.DeleteTopicsResponse.DeletableTopicResult


def handle_delete_topics(
    request: messages.DeleteTopicsRequest,
    context: RequestContext,
    respond: Callable[[messages.DeleteTopicsResponse], None],
) -> None:
    """Delete the topics, each identified by its name or its id."""
    requested_topics = [Topic(name) for name in request.topic_names] + request.topics
    names_and_ids: list[str | bytes] = []
    refused: list[TopicResult] = []
    for topic in requested_topics:
        refusal = _refusal(topic, context)
        if refusal is None:
            names_and_ids.append(topic.topic_id if topic.name is None else topic.name)
        else:
            refused.append(refusal)

    quota = mutation_quota(context, STRICT_QUOTA_VERSION)

    def answer(results: list[DeleteTopicResult]) -> None:
        deleted = [_topic_result(result) for result in results]
        respond(messages.DeleteTopicsResponse(quota.throttle_time_ms, responses=refused + deleted))

    def refuse(outcome: Outcome) -> None:
        error_code = outcome.error_code
        disabled = error_code is ErrorCode.TOPIC_DELETION_DISABLED
        if disabled and context.api_version < DELETION_DISABLED_VERSION:
            error_code = ErrorCode.INVALID_REQUEST
        failed = [TopicResult(topic.name, topic.topic_id, error_code) for topic in requested_topics]
        respond(messages.DeleteTopicsResponse(responses=failed))

    forward(
        context.broker,
        request.timeout_ms,
        lambda controller: controller.delete_topics(names_and_ids, quota.record),
        answer,
        refuse,
    )


def _refusal(topic: Topic, context: RequestContext) -> TopicResult | None:
    """Return the result of a topic that is refused before it reaches the controller."""
    has_name, has_id = topic.name is not None, topic.topic_id != NO_TOPIC_ID
    if has_name is has_id:
        message = "You may not specify both topic name and topic id."
        if not has_name:
            message = "Neither topic name nor id were specified."
        return TopicResult(topic.name, topic.topic_id, ErrorCode.INVALID_REQUEST, message)
    name = topic.name or context.broker.image.topic_names.get(topic.topic_id, "")
    error_code = injected_error(context, name)
    if error_code:
        return TopicResult(topic.name, topic.topic_id, error_code)
    return None if not name else _denial(topic, name, context)


def _denial(topic: Topic, name: str, context: RequestContext) -> TopicResult | None:
    """Return the result of a topic that the client may not delete.

    A client that may not describe the topic learns neither whether the name exists nor the name of the id.
    """

    def may(operation: AclOperation, resource_type: ResourceType, resource: str) -> bool:
        is_topic = resource_type is ResourceType.TOPIC
        return is_authorized(context, operation, resource_type, resource, logs_denial=is_topic)

    if may(AclOperation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME):
        return None
    is_seen = may(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
    may_delete = may(AclOperation.DELETE, ResourceType.TOPIC, name)
    by_id = topic.name is None
    if may_delete and (is_seen or by_id):
        return None
    if is_seen and name not in context.broker.image.topics:
        return None  # the controller reports the unknown topic
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    visible_name = name if is_seen and by_id else topic.name
    return TopicResult(visible_name, topic.topic_id, code, ERROR_TEXTS[code])


def _topic_result(result: DeleteTopicResult) -> TopicResult:
    return TopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_code=result.outcome.error_code,
        error_message=result.outcome.error_message,
    )
