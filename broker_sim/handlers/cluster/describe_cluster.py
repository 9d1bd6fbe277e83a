"""DescribeCluster (key 60), versions 0-2; mirrors `KafkaApis.handleDescribeCluster`.

Behaviour:
* lists the live brokers that have the client's listener, on request also the fenced ones
* the controller id is that of any live broker, which forwards requests to the controller

* on a controllers' listener the one controller is listed, with its address at this broker
* a request for the other kind of endpoint is MISMATCHED_ENDPOINT_TYPE

Version notes: 1 distinguishes brokers and controllers (KIP-919), 2 can list fenced brokers (KIP-1073).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.controller import CONTROLLER_ID
from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorization import cluster_operations
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

BROKERS = 1
CONTROLLERS = 2


def handle_describe_cluster(
    request: messages.DescribeClusterRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeClusterResponse], None],
) -> None:
    """List the brokers."""
    if request.endpoint_type != BROKERS:
        respond(_wrong_endpoint(request.endpoint_type, "BROKER", "CONTROLLER"))
        return
    image = context.broker.image
    alive = image.alive_brokers()
    brokers = alive
    if request.include_fenced_brokers:
        brokers = [broker for _, broker in sorted(image.brokers.items())]
    response = messages.DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=context.broker.random.choice(alive).broker_id if alive else -1,
        brokers=[
            messages.DescribeClusterResponse.DescribeClusterBroker(
                broker.broker_id, endpoint.host, endpoint.port, broker.rack, broker.fenced
            )
            for broker in brokers
            if (endpoint := broker.endpoint(context.listener)) is not None
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    respond(response)


def handle_describe_controllers(
    request: messages.DescribeClusterRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeClusterResponse], None],
) -> None:
    """List the controller."""
    if request.endpoint_type != CONTROLLERS:
        respond(_wrong_endpoint(request.endpoint_type, "CONTROLLER", "BROKER"))
        return
    response = messages.DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        cluster_id=context.broker.image.cluster_id,
        controller_id=CONTROLLER_ID,
        brokers=[
            messages.DescribeClusterResponse.DescribeClusterBroker(CONTROLLER_ID, endpoint.host, endpoint.port)
            for endpoint in context.broker.controller_endpoints
            if endpoint.listener == context.listener
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    respond(response)


def _wrong_endpoint(endpoint_type: int, actual: str, other: str) -> messages.DescribeClusterResponse:
    if endpoint_type in {BROKERS, CONTROLLERS}:
        return messages.DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message=f"The request was sent to an endpoint of type {actual}, but we wanted an"
            f" endpoint of type {other}",
        )
    return messages.DescribeClusterResponse(
        error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=f"Unsupported endpoint type {endpoint_type}"
    )
