"""The last requests of each client, with their answers; kept where somebody wants to look at them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.handlers.context import RequestContext, Respond
    from purgatory import Clock

__all__ = ["LoggedRequest", "RequestLog"]

KEPT_PER_CLIENT: Final = 50


class LoggedRequest:
    """One request of a client, and what it was answered."""

    __slots__ = ("answer", "answered_ms", "broker_id", "context", "request", "taken_ms")

    def __init__(
        self, broker_id: int, request: Any, context: RequestContext, taken_ms: int
    ) -> None:
        self.broker_id = broker_id
        self.request = request
        self.context = context
        self.taken_ms = taken_ms
        """When the broker began to handle it, by the clock of the log."""
        self.answer: Any = None
        """The response's message; None before, and where there is none, as with acks=0."""
        self.answered_ms: int | None = None


class RequestLog:
    """Keeps the last requests per client id, while `is_kept`. Thread rule: the cluster's loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.is_kept = False
        self._by_client: dict[str, deque[LoggedRequest]] = {}

    @property
    def by_client(self) -> Mapping[str, deque[LoggedRequest]]:
        """The last requests, oldest first, by client id; "" for clients without."""
        return self._by_client

    def take(
        self, broker_id: int, request: Any, context: RequestContext, respond: Respond
    ) -> Respond:
        """Note a request; return what its handler is to respond with."""
        logged = LoggedRequest(broker_id, request, context, self._clock.now_ms())
        client = self._by_client.setdefault(context.client_id or "", deque(maxlen=KEPT_PER_CLIENT))
        client.append(logged)

        def respond_and_note(message: Any) -> None:
            logged.answer = message
            logged.answered_ms = self._clock.now_ms()
            respond(message)

        return respond_and_note
