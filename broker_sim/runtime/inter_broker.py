"""Requests to other brokers, at most one of a kind at a time to each; mirrors `InterBrokerSendThread`.

`InterBrokerSender` sends them. Items for a broker that has not answered yet wait in an `InterBrokerQueue`
and go with the next request:

    coordinators of transactions   markers for partition leaders, all waiting ones in one request
    leaders of partitions          transaction checks for coordinators, all waiting ones in one request
    leaders of share partitions    state reads and writes for share coordinators, one request per group
    group coordinators             latest-offset lookups for partition leaders, one by one

Deliberate difference: a broker does not use a link to reach itself. In Kafka it has a connection to itself
of its own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from broker_sim_purgatory import Clock

    from broker_sim.runtime.links import Links
    from broker_sim.runtime.process import CallLater

Waiting = TypeVar("Waiting")
Request = TypeVar("Request")
Response = TypeVar("Response")


class RequestTimeouts:
    """Unanswered requests of one sender, all with the same timeout. Thread rule: the broker's loop.

    Stands for `request.timeout.ms` in Kafka's `NetworkClient`, whose poll looks for requests that are too old.
    Nearly every request is answered at once, so one timer for each would be wasted: a single timer is set for the
    oldest request, and set again if that has been answered meanwhile.
    """

    __slots__ = ("_call_later", "_clock", "_is_set", "_last_number", "_timeout_ms", "_waiting")

    def __init__(self, call_later: CallLater, clock: Clock, timeout_ms: int) -> None:
        self._call_later = call_later
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._waiting: dict[int, tuple[int, Callable[[], object]]] = {}
        """Deadline and callback by number; the oldest first."""
        self._last_number = 0
        self._is_set = False

    def begin(self, on_timeout: Callable[[], object]) -> int:
        """Start the timeout of a request and return its number; `on_timeout()` is called unless `end` comes first."""
        self._last_number += 1
        self._waiting[self._last_number] = (self._clock.deadline_ms(self._timeout_ms), on_timeout)
        if not self._is_set:
            self._set_timer(self._timeout_ms)
        return self._last_number

    def end(self, number: int) -> bool:
        """Stop the timeout of that request; return False if it was over already."""
        return self._waiting.pop(number, None) is not None

    def _set_timer(self, delay_ms: int) -> None:
        self._is_set = True
        self._call_later(delay_ms, self._expire)

    def _expire(self) -> None:
        """End the requests that are due, and set the timer for the oldest one left."""
        self._is_set = False
        now_ms = self._clock.now_ms()
        due = [number for number, (deadline_ms, _) in self._waiting.items() if deadline_ms <= now_ms]
        callbacks = [self._waiting.pop(number)[1] for number in due]
        for deadline_ms, _ in self._waiting.values():
            self._set_timer(deadline_ms - now_ms)
            break
        for on_timeout in callbacks:
            on_timeout()


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
        api_of: Callable[[Request], str],
    ) -> None:
        """`serve(receiver, request, respond)` handles a request; it runs in the receiver's process.

        `api_of(request)` is Kafka's name of its API.
        """
        self._broker_id = broker_id
        self._links = links
        self._serve = serve
        self._api_of = api_of
        self._timeouts = RequestTimeouts(call_later, clock, timeout_ms)
        self._in_flight: set[tuple[int, object]] = set()

    def is_busy(self, receiver: int, kind: object = None) -> bool:
        """Whether that broker has yet to answer a request of that kind."""
        return (receiver, kind) in self._in_flight

    def send(
        self, receiver: int, request: Request, on_answer: Callable[[Response | None], object], kind: object = None
    ) -> None:
        """Send the request; `on_answer(None)` is called if the connection is lost or no answer comes in time."""
        assert not self.is_busy(receiver, kind)
        self._in_flight.add((receiver, kind))

        def end(response: Response | None) -> None:
            self._in_flight.discard((receiver, kind))
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
            self._api_of(request),
        )


class InterBrokerQueue(Generic[Waiting, Request, Response]):
    """A queue of items that wait for other brokers. Thread rule: the broker's loop."""

    def __init__(
        self,
        sender: InterBrokerSender[Request, Response],
        make_waiting: Callable[[], Waiting],
        take: Callable[[Waiting], tuple[Request, Callable[[Response | None], object]] | None],
        after_serving: Callable[[Callable[[], object]], object],
        *,
        before_sending: Callable[[], object] = lambda: None,
        order: Callable[[Iterable[tuple[int, Any]]], Iterable[tuple[int, Any]]] = list,
    ) -> None:
        """`make_waiting()` returns a new collection for the items of one kind that wait for one broker.

        `take(waiting)` removes the next request from it and returns the request and its answer callback; None if
        nothing is left to send. `before_sending()` may add items. Brokers get their requests in the given `order`.
        """
        self._sender = sender
        self._make_waiting = make_waiting
        self._take = take
        self._after_serving = after_serving
        self._before_sending = before_sending
        self._order = order
        self._waiting: dict[tuple[int, Any], Waiting] = {}
        self._is_woken = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def waiting_for(self, receiver: int, kind: Any = None) -> Waiting:
        """Return the collection that waits for that broker, to add to it."""
        waiting = self._waiting.get((receiver, kind))
        if waiting is None:
            waiting = self._waiting[receiver, kind] = self._make_waiting()
        return waiting

    def send_soon(self) -> None:
        """Send the waiting requests when the running handler has returned."""
        if not self._is_woken:
            self._is_woken = True
            self._after_serving(self._wake)

    def _wake(self) -> None:
        self._is_woken = False
        self._before_sending()
        self.send_all()

    def send_all(self) -> None:
        """Send the waiting requests of all brokers that have answered the previous one."""
        for receiver, kind in self._order(list(self._waiting)):
            self.send(receiver, kind)

    def send(self, receiver: int, kind: Any = None) -> None:
        """Send the next request to that broker, unless it has yet to answer one or nothing waits for it."""
        # An immediate answer may already have sent the items that were queued for the next broker.
        waiting = self._waiting.get((receiver, kind))
        if waiting is None or self._sender.is_busy(receiver, kind):
            return
        request = self._take(waiting)
        if not waiting:
            del self._waiting[receiver, kind]
        if request is not None:
            self._sender.send(receiver, *request, kind)


MAX_ATTEMPTS: Final = 5
_FIRST_BACKOFF_MS: Final = 1_000
_MAX_BACKOFF_MS: Final = 30_000
_JITTER: Final = 0.2


def backoff_ms(attempts: int, rng: random.Random) -> int:
    """Return the backoff after that number of attempts: doubling from 2 s to 30 s, with a jitter of 20 %.

    Mirrors `ExponentialBackoffManager` as Kafka's persister and its client for partition metadata use it.
    """
    factor = rng.uniform(1 - _JITTER, 1 + _JITTER)
    return min(int(factor * _FIRST_BACKOFF_MS * 2**attempts), _MAX_BACKOFF_MS)
