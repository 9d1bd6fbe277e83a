"""DeleteTopics (key 20), versions 1-6; mirrors `ControllerApis.deleteTopics`.

Behaviour:
* each topic succeeds or fails alone
* `delete.topic.enable=false` refuses the whole request

Version notes: 3 has TOPIC_DELETION_DISABLED, 4 is flexible, 5 adds error messages and may be throttled, 6 names topics by
id too (KIP-516).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.forwarding import forward
from broker_sim.handlers.support.injected_error import injected_error
from broker_sim.handlers.support.mutation_quota import mutation_quota
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.controller import DeleteTopicResult, Outcome
    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_delete_topics"]

DELETION_DISABLED_VERSION = 3
STRICT_QUOTA_VERSION = 5
Topic = messages.DeleteTopicsRequest.DeleteTopicState
TopicResult = messages.DeleteTopicsResponse.DeletableTopicResult


def handle_delete_topics(
    request: messages.DeleteTopicsRequest,
    context: RequestContext,
    respond: Callable[[messages.DeleteTopicsResponse], None],
) -> None:
    """Delete the topics, each named by its name or its id."""
    asked = [Topic(name) for name in request.topic_names] + request.topics
    wanted: list[str | bytes] = []
    refused: list[TopicResult] = []
    for topic in asked:
        refusal = _refusal(topic, context)
        if refusal is None:
            wanted.append(topic.topic_id if topic.name is None else topic.name)
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
        failed = [TopicResult(topic.name, topic.topic_id, error_code) for topic in asked]
        respond(messages.DeleteTopicsResponse(responses=failed))

    forward(
        context.broker,
        request.timeout_ms,
        lambda controller: controller.delete_topics(wanted, quota.record),
        answer,
        refuse,
    )


def _refusal(topic: Topic, context: RequestContext) -> TopicResult | None:
    """Return the answer of a topic that the controller is not asked to delete."""
    has_name, has_id = topic.name is not None, topic.topic_id != NO_TOPIC_ID
    if has_name is has_id:
        message = "You may not specify both topic name and topic id."
        if not has_name:
            message = "Neither topic name nor id were specified."
        return TopicResult(topic.name, topic.topic_id, ErrorCode.INVALID_REQUEST, message)
    name = topic.name or context.broker.image.topic_names.get(topic.topic_id, "")
    error_code = injected_error(context, name)
    return TopicResult(topic.name, topic.topic_id, error_code) if error_code else None


def _topic_result(result: DeleteTopicResult) -> TopicResult:
    return TopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_code=result.outcome.error_code,
        error_message=result.outcome.error_message,
    )
