"""The link from a broker to the active controller.

Mirrors `NodeToControllerChannelManager` and the forwarding of admin requests (KIP-590).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.runtime.links import CONTROLLER_ID

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.controller.controller import Controller
    from broker_sim.coordinator.broker_context import BrokerContext

Result = TypeVar("Result")


class ControllerLink:
    """Runs verbs at the controller, and passes their results back later."""

    def __init__(self, broker: BrokerContext, controller: Controller) -> None:
        self._broker = broker
        self._controller = controller

    def call(
        self,
        verb: Callable[[Controller], Result],
        on_result: Callable[[Result], None],
        on_refusal: Callable[[ApiError], None],
    ) -> None:
        """Run `verb(controller)` at the controller, and `on_result(result)` at this broker when the result has arrived.

        `on_refusal(error)` runs here instead if the verb raises ApiError; any other exception becomes
        UNKNOWN_SERVER_ERROR. A verb that raises has changed no metadata: the controller commits at its end.
        """

        def serve(send_result: Callable[[Callable[[], None]], None]) -> None:
            try:
                result = verb(self._controller)
            except ApiError as error:
                send_result(partial(on_refusal, error))
            except Exception as error:  # noqa: BLE001 - whatever the reason, the broker waits for a result
                message = f"the controller failed to serve {self._broker.process.name}"
                self._broker.process.report_error(message, error)
                send_result(partial(on_refusal, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)))
            else:
                send_result(partial(on_result, result))

        self._broker.links.call(self._broker.broker_id, CONTROLLER_ID, serve, lambda answer: answer(), lambda: None)
