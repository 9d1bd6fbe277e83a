"""Requests of one kind to other brokers, at most one at a time to each; mirrors `InterBrokerSendThread`.

What becomes due for a broker that has not answered yet waits with the caller, and goes with the next request.

Deliberate difference: to itself a broker does not speak over a link. In Kafka it does, over a connection
to itself that nothing else shares.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from broker_sim.runtime.request_timeouts import RequestTimeouts

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock

    from broker_sim.runtime.links import Links
    from broker_sim.runtime.process import CallLater

Request = TypeVar("Request")
Response = TypeVar("Response")


class InterBrokerSender(Generic[Request, Response]):
    """Sends requests to brokers by their ids. Thread rule: the broker's loop."""

    def __init__(
        self,
        broker_id: int,
        call_later: CallLater,
        clock: Clock,
        links: Links,
        timeout_ms: int,
        serve: Callable[[int, Request, Callable[[Response], object]], object],
    ) -> None:
        """`serve(receiver, request, respond)` is what the receiver does; it runs in its process."""
        self._broker_id = broker_id
        self._links = links
        self._serve = serve
        self._timeouts = RequestTimeouts(call_later, clock, timeout_ms)
        self._in_flight: set[int] = set()

    def is_busy(self, receiver: int) -> bool:
        """Whether that broker has not answered the request before."""
        return receiver in self._in_flight

    def send(self, receiver: int, request: Request, on_answer: Callable[[Response | None], object]) -> None:
        """Send the request; `on_answer(None)` where the connection is lost, or no answer comes in time."""
        assert receiver not in self._in_flight
        self._in_flight.add(receiver)

        def end(response: Response | None) -> None:
            self._in_flight.discard(receiver)
            on_answer(response)

        def answered(response: Response | None) -> None:
            if self._timeouts.end(number):
                end(response)

        number = self._timeouts.begin(partial(end, None))
        if receiver == self._broker_id:
            self._serve(receiver, request, answered)
            return
        self._links.call(
            self._broker_id,
            receiver,
            lambda respond: self._serve(receiver, request, respond),
            answered,
            partial(answered, None),
        )
