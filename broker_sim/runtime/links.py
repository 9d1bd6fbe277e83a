"""The network between the nodes of one cluster: remote calls over links that can fail.

They stand in for the sockets between brokers. A call is one message and its result another; each takes the
link from its sender to its receiver, which may be slow or cut.

A link behaves like a TCP connection: messages sent while it is cut are not lost; they arrive in order when
the link is healthy again. A caller that cannot wait that long needs a timeout of its own. Calls to a node
that is dead or not listening yet fail at once, and so do the calls that a node leaves unanswered when it
dies.

Messages without latency arrive in the next turn of the event loop, in the order in which they were sent, and
so do the answers to them. So all messages that brokers exchange for one client's request arrive before the
client's next request is read.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from broker_sim.runtime.process import Process
    from broker_sim.runtime.scheduler import Scheduler

CONTROLLER_ID = -1
"""The node id of the active controller on the links."""

MAX_PER_TURN: Final = 256
"""Maximum number of messages that arrive in one turn of the event loop; then clients are served."""

Result = TypeVar("Result")


class LinkFault(NamedTuple):
    """A fault of the link from one node to another: it is cut, or slow by `delay_ms`."""

    drop: bool = False
    delay_ms: int = 0


HEALTHY = LinkFault()


_Message = tuple["Process", "Callable[..., object]", tuple[Any, ...]]
"""A process, and the callback and arguments to run in it; dropped if the process has ended."""


class Call:
    """A call from one node to another, with its times if calls are recorded."""

    __slots__ = ("_links", "api", "begun_ms", "callee", "caller", "ended_ms", "on_failure", "on_result", "source")

    def __init__(
        self,
        links: Links,
        source: int,
        callee: int,
        caller: Process,
        on_result: Callable[[Any], object],
        on_failure: Callable[[], object],
        api: str,
    ) -> None:
        self._links = links
        self.api = api
        self.begun_ms = -1
        self.ended_ms: int | None = None
        """When the result arrived; None without one."""
        self.source = source
        self.callee = callee
        self.caller = caller
        self.on_result = on_result
        self.on_failure = on_failure

    def send_result(self, result: object) -> None:
        """Send the result back; called at the callee."""
        self._links.send(self.callee, self.source, self._finish, result)

    def _finish(self, result: object) -> None:
        """Deliver the result, unless the call has failed already."""
        links = self._links
        if not links.open_calls.pop(self, False):
            return
        if links.calls is not None:
            self.ended_ms = links.now_ms()
        self.on_result(result)


def drawn_latency(rng: random.Random, most_ms: int) -> Callable[[int, int], int]:
    """Return a latency function for links: a random 0 to `most_ms` milliseconds for each message.

    It draws the same numbers as `rng.randint(0, most_ms)`, with three calls fewer for each message.
    """
    getrandbits, width = rng.getrandbits, most_ms + 1
    bits = width.bit_length()

    def draw(_source: int, _target: int) -> int:
        while (bits_drawn := getrandbits(bits)) >= width:
            pass
        return bits_drawn

    return draw


class Links:
    """Carries calls between the processes of a cluster; used on the scheduler's thread only.

    `latency_ms(source, target)`, if given, is how long a healthy link takes for one message;
    messages never overtake each other on a link.
    """

    def __init__(self, scheduler: Scheduler, latency_ms: Callable[[int, int], int] | None = None) -> None:
        self._scheduler = scheduler
        self._call_soon = scheduler.call_soon
        self._latency_ms = latency_ms
        self._processes: dict[int, Process] = {}
        self._listening: set[int] = set()
        self._faults: dict[tuple[int, int], LinkFault] = {}
        self._held: dict[tuple[int, int], deque[_Message]] = {}
        self._delayed: dict[tuple[int, int], deque[_Message]] = {}
        self._last_arrival_ms: dict[tuple[int, int], int] = {}
        self.open_calls: dict[Call, bool] = {}
        """The calls that wait for their results, the oldest first; a call removes itself."""
        self.calls: deque[Call] | None = None
        """The calls so far; None unless an observer has put a deque here."""
        self.choose_arrival: Callable[[Sequence[tuple[int, int]]], int] | None = None
        """Returns the index of the message that arrives next, given the links of the waiting messages, oldest first.

        It is called for messages without latency only, and must keep the order of each link.
        """
        self._arriving: deque[tuple[tuple[int, int], _Message]] = deque()
        """Messages without latency, with their links."""
        self._is_arriving = False
        """Whether `_arrive_all` is scheduled or running."""

    def attach(self, node_id: int, process: Process) -> None:
        """Connect a node's process, so that it can send and receive; a restarted node attaches its new process."""
        self._processes[node_id] = process

    def listen(self, node_id: int) -> None:
        """Accept calls to an attached node until it is detached."""
        self._listening.add(node_id)

    def detach(self, node_id: int) -> None:
        """Remove a dead node: calls to it fail, now and until it attaches again."""
        dead = self._processes.pop(node_id)
        self._listening.discard(node_id)
        for call in list(self.open_calls):
            if call.caller is dead:
                del self.open_calls[call]
            elif call.callee == node_id:
                self._fail(call)

    @property
    def faults(self) -> dict[tuple[int, int], LinkFault]:
        """The links with faults, by (from, to)."""
        return dict(self._faults)

    def set_fault(self, source: int, target: int, fault: LinkFault) -> None:
        """Cut or slow the link from `source` to `target`; a `LinkFault()` ends the fault."""
        key = (source, target)
        if fault == HEALTHY:
            self._faults.pop(key, None)
        else:
            self._faults[key] = fault
        if not fault.drop:
            for message in self._held.pop(key, ()):
                self._transmit(key, message)

    def heal(self) -> None:
        """End all faults."""
        for source, target in list(self._faults):
            self.set_fault(source, target, HEALTHY)

    def send(self, source: int, target: int, callback: Callable[..., object], *args: Any) -> None:
        """Run `callback(*args)` in the target's process when the message arrives."""
        process = self._processes.get(target)
        if process is not None:
            self._transmit((source, target), (process, callback, args))

    def _transmit(self, link: tuple[int, int], message: _Message) -> None:
        delay_ms = 0
        if self._faults:
            fault = self._faults.get(link, HEALTHY)
            if fault.drop:
                self._held.setdefault(link, deque()).append(message)
                return
            delay_ms = fault.delay_ms
        if self._latency_ms is not None:
            delay_ms += self._latency_ms(link[0], link[1])
        delayed = self._delayed.get(link)
        if not delay_ms and not delayed:
            self._arriving.append((link, message))
            if not self._is_arriving:
                self._is_arriving = True
                self._call_soon(self._arrive_all)
            return
        if delayed is None:
            delayed = self._delayed[link] = deque()
        delayed.append(message)
        now_ms = self._scheduler.clock.now_ms()
        arrival_ms = max(now_ms + delay_ms, self._last_arrival_ms.get(link, 0))
        self._last_arrival_ms[link] = arrival_ms
        self._scheduler.call_later(arrival_ms - now_ms, self._arrive_delayed, link)

    def _arrive_all(self) -> None:
        arriving, processes = self._arriving, self._processes
        try:
            for _ in range(MAX_PER_TURN):
                if not arriving:
                    break
                if self.choose_arrival is not None and len(arriving) > 1:
                    self._put_in_front(self.choose_arrival([link for link, _ in arriving]))
                (_, target), (process, callback, args) = arriving.popleft()
                if processes.get(target) is process:
                    process.deliver_with(callback, args)
        finally:
            self._is_arriving = bool(arriving)
            if arriving:
                self._call_soon(self._arrive_all)

    def _put_in_front(self, place: int) -> None:
        arriving = self._arriving
        message = arriving[place]
        del arriving[place]
        arriving.appendleft(message)

    def _arrive_delayed(self, link: tuple[int, int]) -> None:
        """Deliver the oldest message of the link: timers due in the same millisecond may run in any order."""
        process, callback, args = self._delayed[link].popleft()
        if self._processes.get(link[1]) is process:
            process.deliver_with(callback, args)

    def call(
        self,
        source: int,
        target: int,
        procedure: Callable[[Callable[[Result], None]], object],
        on_result: Callable[[Result], object],
        on_failure: Callable[[], object],
        api: str = "",
    ) -> None:
        """Run `procedure(send_result)` at the target, then `on_result(result)` at the source.

        `api` is Kafka's name of the request's API, for readers of `calls`.

        `on_failure()` runs instead if the target does not listen or dies. Neither runs if the source dies.
        """
        caller = self._processes[source]
        if target not in self._listening:
            self._scheduler.call_soon(caller.deliver, on_failure)
            return
        call = Call(self, source, target, caller, on_result, on_failure, api)
        self.open_calls[call] = True
        if self.calls is not None:
            call.begun_ms = self.now_ms()
            self.calls.append(call)
        self._transmit((source, target), (self._processes[target], procedure, (call.send_result,)))

    def now_ms(self) -> int:
        """Return the time in ms that recorded calls have."""
        return self._scheduler.clock.now_ms()

    def _fail(self, call: Call) -> None:
        del self.open_calls[call]
        self._scheduler.call_soon(call.caller.deliver, call.on_failure)
