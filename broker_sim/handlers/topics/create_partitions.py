"""CreatePartitions (key 37), versions 0-3; mirrors `ControllerApis.createPartitions`.

Behaviour:
* each topic succeeds or fails alone
* with `validate_only` nothing is created, but the response is the same

Version notes: 2 is flexible, 3 may be throttled (KIP-599).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.controller import NewPartitions
from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.handlers.support.forwarding import forward, mutation_quota
from broker_sim.handlers.support.partition_errors import injected_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.controller import Outcome
    from broker_sim.handlers.context import RequestContext

STRICT_QUOTA_VERSION = 3
TopicResult = messages.CreatePartitionsResponse.CreatePartitionsTopicResult


def handle_create_partitions(
    request: messages.CreatePartitionsRequest,
    context: RequestContext,
    respond: Callable[[messages.CreatePartitionsResponse], None],
) -> None:
    """Increase the topics' partition counts, or only validate the request."""
    injected = {topic.name: injected_error(context, topic.name) for topic in request.topics}
    refused = [TopicResult(name, error) for name, error in injected.items() if error]
    denied = unauthorized_names(context, AclOperation.ALTER, ResourceType.TOPIC, injected)
    refused += [
        TopicResult(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        for name in injected
        if name in denied and not injected[name]
    ]
    new_partitions = [
        _new_partitions(topic) for topic in request.topics if not injected[topic.name] and topic.name not in denied
    ]
    if not new_partitions:
        respond(messages.CreatePartitionsResponse(results=refused))
        return

    quota = mutation_quota(context, STRICT_QUOTA_VERSION)

    def answer(outcomes: Iterable[tuple[str, Outcome]]) -> None:
        results = [TopicResult(name, outcome.error_code, outcome.error_message) for name, outcome in outcomes]
        respond(messages.CreatePartitionsResponse(quota.throttle_time_ms, results=results + refused))

    forward(
        context.broker,
        request.timeout_ms,
        lambda controller: controller.create_partitions(new_partitions, request.validate_only, quota.record),
        answer,
        lambda outcome: answer((topic.name, outcome) for topic in new_partitions),
    )


def _new_partitions(topic: messages.CreatePartitionsRequest.CreatePartitionsTopic) -> NewPartitions:
    if topic.assignments is None:
        return NewPartitions(topic.name, topic.count)
    assignments = [assigned.broker_ids for assigned in topic.assignments]
    return NewPartitions(topic.name, topic.count, assignments)
