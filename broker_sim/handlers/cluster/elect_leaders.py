"""ElectLeaders (key 43), versions 0-2; mirrors `ControllerApis.handleElectLeaders`.

Behaviour:
* the controller elects; each partition succeeds or fails alone
* the response is parked in the ElectLeader purgatory, watched under every partition that has a new
  leader, until this broker's own metadata shows those leaders, or until the request's timeout, as in
  `ReplicaManager.electLeaders`

Version notes: 0 has only preferred elections (KIP-183), 1 adds unclean elections and an error code for
the whole request (KIP-460), 2 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.controller import ElectionType, Outcome
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.forwarding import forward
from broker_sim.metadata import NO_LEADER
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.replica import DelayedElectLeader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.controller import Controller, PartitionOutcome
    from broker_sim.handlers.context import BrokerServices, RequestContext

TOP_LEVEL_ERROR_VERSION = 1
TopicResult = messages.ElectLeadersResponse.ReplicaElectionResult
PartitionResult = messages.ElectLeadersResponse.PartitionResult


class _Elections(NamedTuple):
    """The controller's results by topic, and the new leaders by partition."""

    results: list[TopicResult]
    new_leaders: dict[TopicPartition, int]


def handle_elect_leaders(
    request: messages.ElectLeadersRequest,
    context: RequestContext,
    respond: Callable[[messages.ElectLeadersResponse], None],
) -> None:
    """Elect the leaders of the requested partitions, or of all if the list is None."""
    broker = context.broker
    deadline_ms = broker.clock.now_ms() + request.timeout_ms

    def on_elected(elections: _Elections) -> None:
        response = messages.ElectLeadersResponse(replica_election_results=elections.results)
        if not elections.new_leaders:
            respond(response)
            return
        operation = DelayedElectLeader(
            max(0, deadline_ms - broker.clock.now_ms()),
            elections.new_leaders,
            lambda topic_partition: _current_leader(broker, topic_partition),
            lambda: respond(response),
            client_id=context.client_id,
        )
        broker.replica_manager.purgatories.elect_leader.try_complete_else_watch(operation, list(elections.new_leaders))

    def refuse(outcome: Outcome) -> None:
        has_error_code = context.api_version >= TOP_LEVEL_ERROR_VERSION
        respond(
            messages.ElectLeadersResponse(
                error_code=outcome.error_code if has_error_code else ErrorCode.NONE,
                replica_election_results=[
                    TopicResult(topic.topic, [_partition_result(p, outcome) for p in topic.partitions])
                    for topic in request.topic_partitions or ()
                ],
            )
        )

    if request.topic_partitions is not None and not request.topic_partitions:
        respond(messages.ElectLeadersResponse())
    else:
        forward(context.broker, request.timeout_ms, lambda controller: _elect(controller, request), on_elected, refuse)


def _elect(controller: Controller, request: messages.ElectLeadersRequest) -> _Elections:
    """Elect at the controller. Raises ApiError INVALID_REQUEST for an unknown election type."""
    try:
        election_type = ElectionType(request.election_type)
    except ValueError:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}") from None
    topics = request.topic_partitions
    if topics is None:
        outcomes = controller.elect_leaders(election_type, None)
        # Every topic is listed, even if no partition of it needed an election.
        by_name = {name: TopicResult(name) for name in controller.image.topics}
        for outcome in outcomes:
            result = _partition_result(outcome.partition, outcome.outcome)
            by_name[outcome.topic].partition_result.append(result)
        results = list(by_name.values())
    else:
        partitions = [TopicPartition(topic.topic, p) for topic in topics for p in topic.partitions]
        outcomes = controller.elect_leaders(election_type, partitions)
        in_order = iter(outcomes)
        results = [
            TopicResult(topic.topic, [_partition_result(p, next(in_order).outcome) for p in topic.partitions])
            for topic in topics
        ]
    return _Elections(results, _new_leaders(controller, outcomes))


def _new_leaders(controller: Controller, outcomes: Iterable[PartitionOutcome]) -> dict[TopicPartition, int]:
    leaders = {}
    for outcome in outcomes:
        if outcome.outcome.ok:
            topic_partition = TopicPartition(outcome.topic, outcome.partition)
            state = controller.image.partition(topic_partition)
            assert state is not None
            leaders[topic_partition] = state.leader
    return leaders


def _current_leader(broker: BrokerServices, topic_partition: TopicPartition) -> int:
    state = broker.image.partition(topic_partition)
    return NO_LEADER if state is None else state.leader


def _partition_result(partition: int, outcome: Outcome) -> PartitionResult:
    return PartitionResult(partition, outcome.error_code, outcome.error_message)
