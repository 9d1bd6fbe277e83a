"""DeleteTopics (key 20), versions 1-6; mirrors ``ControllerApis.deleteTopics``.

Version notes: 3 has an error code of its own for ``delete.topic.enable=false``, 4 is flexible,
5 adds error messages, 6 names topics by id too (KIP-516).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.forwarding import forward
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.controller import DeleteTopicResult, Outcome
    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_delete_topics"]

DELETION_DISABLED_VERSION = 3
NO_TOPIC_ID = bytes(16)
TopicResult = messages.DeleteTopicsResponse.DeletableTopicResult


def handle_delete_topics(
    request: messages.DeleteTopicsRequest,
    context: RequestContext,
    respond: Callable[[messages.DeleteTopicsResponse], None],
) -> None:
    """Delete the topics, each named by its name or its id; each one succeeds or fails alone."""
    wanted: list[str | bytes] = list(request.topic_names)
    refused: list[TopicResult] = []
    for topic in request.topics:
        has_id = topic.topic_id != NO_TOPIC_ID
        if topic.name is not None and has_id:
            refused.append(_invalid(topic, "You may not specify both topic name and topic id."))
        elif topic.name is None and not has_id:
            refused.append(_invalid(topic, "Neither topic name nor id were specified."))
        else:
            wanted.append(topic.topic_id if topic.name is None else topic.name)

    def answer(results: list[DeleteTopicResult]) -> None:
        deleted = [_topic_result(result) for result in results]
        respond(messages.DeleteTopicsResponse(responses=refused + deleted))

    def refuse(outcome: Outcome) -> None:
        error_code = outcome.error_code
        disabled = error_code is ErrorCode.TOPIC_DELETION_DISABLED
        if disabled and context.api_version < DELETION_DISABLED_VERSION:
            error_code = ErrorCode.INVALID_REQUEST
        by_name = [TopicResult(name=name, error_code=error_code) for name in request.topic_names]
        by_either = [
            TopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error_code)
            for topic in request.topics
        ]
        respond(messages.DeleteTopicsResponse(responses=by_name + by_either))

    forward(
        context.broker,
        request.timeout_ms,
        lambda controller: controller.delete_topics(wanted),
        answer,
        refuse,
    )


def _invalid(topic: messages.DeleteTopicsRequest.DeleteTopicState, message: str) -> TopicResult:
    return TopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=message,
    )


def _topic_result(result: DeleteTopicResult) -> TopicResult:
    return TopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_code=result.outcome.error_code,
        error_message=result.outcome.error_message,
    )
