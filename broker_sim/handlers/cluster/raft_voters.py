"""AddRaftVoter (80), versions 0 and 1, RemoveRaftVoter (81) and UnregisterController (94), version 0.

Mirrors `KafkaRaftClient.handleAddVoterRequest`, `handleRemoveVoterRequest` and `ControllerApis`, as a cluster of 4.4.0
with one controller of a fixed quorum (kraft.version 0) answers them: valid requests are UNSUPPORTED_VERSION.

Behaviour:
* checked in this order: cluster id (INCONSISTENT_CLUSTER_ID; null is any), voter (INVALID_REQUEST without an id or a
  directory), and for a new voter the endpoint of the controllers' listener
* the only controller cannot be unregistered (INVALID_REQUEST); any other id is not registered
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller import CONTROLLER_ID
from broker_sim.errors import ErrorCode
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

    AddRequest = messages.AddRaftVoterRequest
    RemoveRequest = messages.RemoveRaftVoterRequest

CONTROLLER_LISTENER: Final = "CONTROLLER"
"""The controllers' listener, as in Kafka's own example configuration."""
Error = tuple[ErrorCode, str]


def handle_add_raft_voter(
    request: messages.AddRaftVoterRequest,
    context: RequestContext,
    respond: Callable[[messages.AddRaftVoterResponse], None],
) -> None:
    """Refuse a new voter of the quorum."""
    error = _first_error(request, context, "Add") or _endpoint_error(request) or _unsupported("adding")
    respond(messages.AddRaftVoterResponse(error_code=error[0], error_message=error[1]))


def handle_remove_raft_voter(
    request: messages.RemoveRaftVoterRequest,
    context: RequestContext,
    respond: Callable[[messages.RemoveRaftVoterResponse], None],
) -> None:
    """Refuse to remove a voter from the quorum."""
    error = _first_error(request, context, "Remove") or _unsupported("removing")
    respond(messages.RemoveRaftVoterResponse(error_code=error[0], error_message=error[1]))


def handle_unregister_controller(
    request: messages.UnregisterControllerRequest,
    context: RequestContext,  # noqa: ARG001 - a handler
    respond: Callable[[messages.UnregisterControllerResponse], None],
) -> None:
    """Refuse to unregister a controller."""
    if request.controller_id == CONTROLLER_ID:
        code, text = ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active."
    else:
        code = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
        text = f"Controller ID {request.controller_id} is not currently registered."
    respond(messages.UnregisterControllerResponse(error_code=code, error_message=text))


def _first_error(request: AddRequest | RemoveRequest, context: RequestContext, what: str) -> Error | None:
    cluster_id = context.broker.image.cluster_id
    if request.cluster_id not in (None, cluster_id):
        text = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{cluster_id}"'
        return ErrorCode.INCONSISTENT_CLUSTER_ID, text
    if request.voter_id < 0 or request.voter_directory_id == NO_TOPIC_ID:
        return ErrorCode.INVALID_REQUEST, f"{what} voter request didn't include a valid voter"
    return None


def _endpoint_error(request: AddRequest) -> Error | None:
    if any(each.name.upper() == CONTROLLER_LISTENER for each in request.listeners):
        return None
    endpoints = ", ".join(
        f"ListenerName({each.name})={each.host}/<unresolved>:{each.port}" for each in request.listeners
    )
    text = (
        f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{endpoints}}})) for the default"
        f" listener ListenerName({CONTROLLER_LISTENER})"
    )
    return ErrorCode.INVALID_REQUEST, text


def _unsupported(what: str) -> Error:
    text = f"Cluster doesn't support {what} voter because the kraft.version feature is 0"
    return ErrorCode.UNSUPPORTED_VERSION, text
