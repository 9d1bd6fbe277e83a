"""ListPartitionReassignments (key 46), version 0 (KIP-455).

Mirrors `ControllerApis.handleListPartitionReassignments`.

Behaviour:
* lists the ongoing reassignments, of the requested partitions or of all
* ignores the request's timeout, as Kafka does
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.controller import OngoingReassignment
    from broker_sim.handlers.context import RequestContext

Response = messages.ListPartitionReassignmentsResponse


def handle_list_partition_reassignments(
    request: messages.ListPartitionReassignmentsRequest,
    context: RequestContext,
    respond: Callable[[messages.ListPartitionReassignmentsResponse], None],
) -> None:
    """List the ongoing reassignments of the requested partitions, or of all if the list is None."""
    partitions_by_topic: dict[str, list[int]] | None = None
    if request.topics is not None:
        partitions_by_topic = {}
        for topic in request.topics:
            partitions_by_topic.setdefault(topic.name, []).extend(topic.partition_indexes)

    def answer(ongoing: list[OngoingReassignment]) -> None:
        topics: dict[str, Response.OngoingTopicReassignment] = {}
        for move in ongoing:
            if move.topic not in topics:
                topics[move.topic] = Response.OngoingTopicReassignment(move.topic)
            topics[move.topic].partitions.append(
                Response.OngoingPartitionReassignment(
                    move.partition, list(move.replicas), list(move.adding_replicas), list(move.removing_replicas)
                )
            )
        respond(Response(error_message=None, topics=list(topics.values())))

    context.broker.controller.call(
        lambda controller: controller.list_partition_reassignments(partitions_by_topic),
        answer,
        lambda error: respond(Response(error_code=error.error_code, error_message=error.error_message)),
    )
