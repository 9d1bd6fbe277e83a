"""The injected faults that hit one request; made by `FaultInjector.hit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults.fault import Loss
from broker_sim.handlers.faults.targets import PARTITIONS, TOPICS
from broker_sim.protocol.api_keys import response_class

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.handlers.context import RequestContext, Respond
    from broker_sim.handlers.faults.fault import Fault

__all__ = ["RequestFaults"]

INJECTED = "injected fault"


class RequestFaults:
    """At least one fault, in the order in which they were injected."""

    __slots__ = ("_faults",)

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = faults

    def error_for(self, topic: str, partition: int = -1) -> ErrorCode:
        """Return the error that answers this partition, or this topic; NONE without one."""
        for fault in self._faults:
            if fault.names(topic, partition):
                return fault.error or ErrorCode.NONE
        return ErrorCode.NONE

    def admit(
        self, context: RequestContext, respond: Respond, call_later: Callable[..., object]
    ) -> Respond | None:
        """Lose or delay the request as a whole, or answer it with one error where its API can.

        Returns what the handler responds with, or None for a request that does not come to it.
        """
        first = self._faults[0]
        if first.lose is Loss.REQUEST:
            context.connection.close(INJECTED)
            return None
        if first.lose is Loss.RESPONSE:
            return lambda _: context.connection.close(INJECTED)
        delay_ms = max(fault.delay_ms for fault in self._faults)
        if delay_ms:
            respond = _delayed(respond, delay_ms, call_later)
        api = context.api_key
        if first.error and api not in PARTITIONS and api not in TOPICS:
            response: Any = response_class(api)()
            response.error_code = first.error
            respond(response)
            return None
        return respond


def _delayed(respond: Respond, delay_ms: int, call_later: Callable[..., object]) -> Respond:
    def respond_later(message: Any) -> None:
        call_later(delay_ms, respond, message)

    return respond_later
