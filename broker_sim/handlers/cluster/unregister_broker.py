"""UnregisterBroker (key 64), version 0 (KIP-500); mirrors `ControllerApis.handleUnregisterBroker`.

Behaviour:
* any broker that is registered can be unregistered, also one that runs: it is in no ISR and leads nothing then,
  and is no broker of the cluster any more, fenced or not; its replicas stay assigned to it
* one that runs stays unknown, because its heartbeats are refused, until it is started anew
* who was never registered, or is no longer, is BROKER_ID_NOT_REGISTERED
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

Response = messages.UnregisterBrokerResponse


def handle_unregister_broker(
    request: messages.UnregisterBrokerRequest,
    context: RequestContext,
    respond: Callable[[messages.UnregisterBrokerResponse], None],
) -> None:
    """Let the controller forget a broker."""
    context.broker.controller.call(
        lambda controller: controller.unregister_broker(request.broker_id),
        lambda _: respond(Response()),
        lambda error: respond(Response(error_code=error.error_code, error_message=error.error_message)),
    )
