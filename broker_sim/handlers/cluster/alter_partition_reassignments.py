"""AlterPartitionReassignments (key 45), versions 0-1 (KIP-455).

Mirrors `ControllerApis.handleAlterPartitionReassignments`.

Behaviour:
* each partition succeeds or fails alone; null replicas cancel its reassignment
* answers once the reassignment has begun

Version notes: 1 can forbid a change of the replication factor (KIP-860).
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from broker_sim.controller import Outcome, Reassignment
from broker_sim.handlers.support.forwarding import forward
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.handlers.context import RequestContext

Response = messages.AlterPartitionReassignmentsResponse


def handle_alter_partition_reassignments(
    request: messages.AlterPartitionReassignmentsRequest,
    context: RequestContext,
    respond: Callable[[messages.AlterPartitionReassignmentsResponse], None],
) -> None:
    """Start to reassign partitions, or cancel their reassignment where the replicas are None."""
    moves = [
        Reassignment(topic.name, partition.partition_index, partition.replicas)
        for topic in request.topics
        for partition in topic.partitions
    ]

    def answer(outcomes: Iterator[Outcome], whole: Outcome) -> None:
        response = Response(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_code=whole.error_code,
            error_message=whole.error_message,
        )
        for topic in request.topics:
            partitions = [
                _partition_result(partition.partition_index, next(outcomes)) for partition in topic.partitions
            ]
            response.responses.append(Response.ReassignableTopicResponse(topic.name, partitions))
        respond(response)

    forward(
        context.broker,
        request.timeout_ms,
        lambda controller: controller.alter_partition_reassignments(moves, request.allow_replication_factor_change),
        lambda results: answer((result.outcome for result in results), Outcome()),
        lambda outcome: answer(repeat(outcome), outcome),
    )


def _partition_result(
    partition: int, outcome: Outcome
) -> messages.AlterPartitionReassignmentsResponse.ReassignablePartitionResponse:
    return Response.ReassignablePartitionResponse(partition, outcome.error_code, outcome.error_message)
