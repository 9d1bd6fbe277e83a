"""AddRaftVoter (80), versions 0 and 1, RemoveRaftVoter (81) and UnregisterController (94), version 0.

Mirrors `KafkaRaftClient.handleAddVoterRequest`, `handleRemoveVoterRequest` and `ControllerApis`, as a cluster of 4.4.0
with one controller answers them: the quorum stays as it is, because no other controller can be reached.

Behaviour:
* checked in this order: cluster id (INCONSISTENT_CLUSTER_ID; null is any), voter (INVALID_REQUEST without an id or a
  directory), for a new voter the endpoint of the controllers' listener, `kraft.version` 0 (UNSUPPORTED_VERSION)
* with `kraft.version` 1 a new voter is REQUEST_TIMED_OUT, or DUPLICATE_VOTER with the controller's id; a voter that is
  to be removed is VOTER_NOT_FOUND, also the only one
* the only controller cannot be unregistered (INVALID_REQUEST); any other id is not registered
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller import CONTROLLER_ID
from broker_sim.errors import ErrorCode
from broker_sim.handlers.cluster.describe_quorum import controller_directory_id
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.metadata.feature_names import KRAFT_VERSION
from broker_sim.protocol import messages
from broker_sim.protocol.uuids import uuid_text

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
    error = (
        _first_error(request, context, "Add")
        or _endpoint_error(request)
        or _unsupported(context, "adding")
        or _no_new_voter(request, context)
    )
    respond(messages.AddRaftVoterResponse(error_code=error[0], error_message=error[1]))


def handle_remove_raft_voter(
    request: messages.RemoveRaftVoterRequest,
    context: RequestContext,
    respond: Callable[[messages.RemoveRaftVoterResponse], None],
) -> None:
    """Refuse to remove a voter from the quorum."""
    error = (
        _first_error(request, context, "Remove") or _unsupported(context, "removing") or _no_removal(request, context)
    )
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


def _unsupported(context: RequestContext, what: str) -> Error | None:
    if context.broker.image.features.get(KRAFT_VERSION, 0) > 0:
        return None
    text = f"Cluster doesn't support {what} voter because the {KRAFT_VERSION} feature is 0"
    return ErrorCode.UNSUPPORTED_VERSION, text


def _no_new_voter(request: AddRequest, context: RequestContext) -> Error:
    voter = _replica_key(request.voter_id, request.voter_directory_id)
    if request.voter_id != CONTROLLER_ID:
        return ErrorCode.REQUEST_TIMED_OUT, f"New voter {voter} is not ready to receive requests"
    text = f"The voter id for {voter} is already part of the set of voters [{_only_voter(context)}]."
    return ErrorCode.DUPLICATE_VOTER, text


def _no_removal(request: RemoveRequest, context: RequestContext) -> Error:
    voter = _replica_key(request.voter_id, request.voter_directory_id)
    return ErrorCode.VOTER_NOT_FOUND, f"Cannot remove voter {voter} from the set of voters [{_only_voter(context)}]"


def _only_voter(context: RequestContext) -> str:
    return _replica_key(CONTROLLER_ID, controller_directory_id(context.broker.image))


def _replica_key(replica_id: int, directory_id: bytes) -> str:
    return f"ReplicaKey(id={replica_id}, directoryId={uuid_text(directory_id)})"
