"""One direction of a connection: what is sent arrives later, in order, once the network lets it pass."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from asyncio import TimerHandle
    from collections.abc import Callable
    from contextvars import Context

    from broker_sim.runtime.virtual.network.network import Network

RETRANSMISSION_TIMEOUT_S: Final = 924.6
"""After that long without an acknowledgement Linux gives a connection up (tcp_retries2 = 15)."""

_Segment = tuple["Callable[..., object]", tuple[Any, ...]]


class End(NamedTuple):
    """Who is at one end of a connection."""

    label: str
    """A client's host, or a server's `address:port`."""
    names: frozenset[str]
    """All that a fault may call it."""


class Pipe:
    """Carries calls from one end to the other; `deliver` runs when a segment arrives."""

    __slots__ = ("_flying", "_give_up", "_held", "_last_ns", "_loop", "_network", "context",
                 "name", "on_give_up", "opaque", "source", "target")  # fmt: skip

    def __init__(self, network: Network, source: End, target: End, name: str) -> None:
        self._network = network
        self._loop = network.loop
        self.source = source
        self.target = target
        self.name = name
        """Short and the same in each run, for the trace."""
        self.context: Context | None = None
        """What the receiver's code runs in; the sender's must not leak to it. None until it has accepted."""
        self.opaque = False
        """Whether its bytes differ from run to run, as encrypted ones do: they are not traced."""
        self.on_give_up: Callable[[], object] | None = None
        """Called when nothing has passed for too long."""
        self._flying: deque[_Segment] = deque()
        self._held: deque[_Segment] = deque()
        self._last_ns = 0
        self._give_up: TimerHandle | None = None

    def send(self, deliver: Callable[..., object], *args: Any) -> None:
        """Have `deliver(*args)` called at the other end, after all that was sent before."""
        network = self._network
        if network.has_cuts and network.is_cut(self):
            self._hold(deliver, args)
            return
        loop = self._loop
        now_ns = loop.clock.now_ns
        due_ns = self._last_ns
        if network.has_latency:
            due_ns = max(due_ns, now_ns + network.draw_latency_ns(self))
        self._flying.append((deliver, args))
        arrive, context = self._arrive, self.context
        if context is None:
            arrive, context = self._arrive_early, network.context
        if due_ns > now_ns:
            self._last_ns = due_ns
            loop.call_at_ns(due_ns, arrive, (), context)
        else:
            loop.call_soon(arrive, context=context)

    def _arrive(self) -> None:
        deliver, args = self._flying.popleft()
        deliver(*args)

    def _arrive_early(self) -> None:
        """Take in what was sent before the receiver had accepted the connection; it may have by now."""
        context = self.context
        if context is None:
            self._arrive()
        elif self._loop.processes.holder(context):
            self._loop.call_soon(self._arrive, context=context)
        else:
            context.run(self._arrive)

    def stop_flying(self) -> None:
        """Hold what is on its way when a cut begins; a part of the first data still arrives."""
        segments = list(self._flying)
        if not segments:
            return
        self._flying = deque([(_nothing_arrives, ())] * len(segments))
        deliver, args = segments[0]
        if args and isinstance(args[0], bytes):
            passed, *rest = self._network.split(args[0])
            self._flying[0] = deliver, (passed,)
            segments[:1] = [(deliver, (part,)) for part in rest]
        held_before, self._held = self._held, deque()  # by a cut that began earlier
        for segment in segments:
            self._hold(*segment)
        self._held.extend(held_before)

    def _hold(self, deliver: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._held.append((deliver, args))
        self._network.keep_held(self)
        if self._give_up is None:
            self._give_up = self._loop.call_later(RETRANSMISSION_TIMEOUT_S, self._on_give_up)

    def release(self) -> None:
        """Send what was held; called by the network once nothing cuts the pipe any more."""
        self._stop_waiting()
        held, self._held = self._held, deque()
        for deliver, args in held:
            self.send(deliver, *args)

    def _on_give_up(self) -> None:
        self._stop_waiting()
        self._held.clear()
        if self.on_give_up is not None:
            self.on_give_up()

    def _stop_waiting(self) -> None:
        if self._give_up is not None:
            self._give_up.cancel()
            self._give_up = None


def _nothing_arrives() -> None:
    """Stand for a segment that a cut holds back."""
