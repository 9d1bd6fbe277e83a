"""UnregisterBroker (key 64), version 0 (KIP-500); mirrors `ControllerApis.handleUnregisterBroker`.

Behaviour:
* any registered broker can be unregistered, even a running one: it leaves all ISRs, leads nothing and is no longer
  listed, not even as fenced; its replicas stay assigned to it
* a running broker stays unregistered until it is restarted, because its heartbeats are refused
* a broker id that is not registered is BROKER_ID_NOT_REGISTERED
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
    """Make the controller remove a broker's registration."""
    context.broker.controller.call(
        lambda controller: controller.unregister_broker(request.broker_id),
        lambda _: respond(Response()),
        lambda error: respond(Response(error_code=error.error_code, error_message=error.error_message)),
    )
