"""The network of a virtual loop: hosts and the pipes between them, with faults, and with latency drawn from the seed.

It is simpler than a real one: IPv4 and TCP only, one address for a name, and data held back by a cut arrives
as soon as the cut is mended, not at the next retransmission.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.runtime.virtual.core.clock import NS_PER_US
from broker_sim.runtime.virtual.network.hosts import Address, Hosts

if TYPE_CHECKING:
    from asyncio import TimerHandle
    from collections.abc import Iterator
    from contextvars import Context

    from broker_sim.runtime.virtual.core.core import Core

ANY = "*"
"""Matches every end of a connection in a fault."""
DEFAULT_HOST = "client"
WINDOW_BYTES = 256 * 1024
RETRANSMISSION_TIMEOUT_S: Final = 924.6
"""Time without an acknowledgement after which Linux gives up a connection (tcp_retries2 = 15)."""

Latency = float | tuple[float, float] | Callable[[str, str], float]
"""Milliseconds one way: fixed, drawn from a range, or given by (source label, target label)."""

_Segment = tuple["Callable[..., object]", tuple[Any, ...]]
"""A callback for the arrival of a segment, and its arguments."""

_current_host: ContextVar[str] = ContextVar("virtual_host", default=DEFAULT_HOST)


class Network:
    """All hosts and pipes of one loop, and their faults.

    A fault names two ends and affects the direction from `source` to `target`. A client's end is named by its host
    (`"client"`, or the name given to `on_host`), a server's end by its address (`"127.0.0.1"`), address and port
    (`"127.0.0.1:9092"`) or host name; `ANY` matches every end.
    """

    def __init__(self, core: Core) -> None:
        self.core = core
        self.hosts = Hosts()
        self.window_bytes = WINDOW_BYTES
        """Unread bytes that a connection holds before its sender has to buffer: the kernels' buffers."""
        self.fragments = False
        """Whether data sent in one call is sometimes split into two segments."""
        self.has_cuts = False
        self.traffic = 0
        """Number of segments sent so far."""
        self.has_latency = False
        self._random = core.stream("network")
        self._latency_ms: Latency = 0
        self._latencies: dict[tuple[str, str], Latency] = {}
        self._fixed_latency_ns: int | None = 0
        """Latency of every segment; None if latencies vary."""
        self._cuts: dict[tuple[str, str], bool] = {}
        """The cuts in force, and whether each has stopped something."""
        self._holding: dict[Pipe, None] = {}
        self._connections: dict[Pipe, None] = {}
        """The clients' pipes of all established connections, oldest first."""
        self._made = 0
        self.host_of_client: dict[Address, str] = {}
        """The host of the last connection from each address and port."""

    # -- latency ----------------------------------------------------------------------------------

    @property
    def latency_ms(self) -> Latency:
        """Latency of every segment for which `set_latency` sets none; can be assigned."""
        return self._latency_ms

    @latency_ms.setter
    def latency_ms(self, latency_ms: Latency) -> None:
        self._latency_ms = _checked(latency_ms)
        self._look_for_latency()

    def set_latency(self, source: str, target: str, latency_ms: Latency | None) -> None:
        """Set the latency from one end to another; None removes it."""
        if latency_ms is None:
            self._latencies.pop((source, target), None)
        else:
            self._latencies[source, target] = _checked(latency_ms)
        self._look_for_latency()

    def _look_for_latency(self) -> None:
        latency = self._latency_ms
        self.has_latency = latency not in (0, (0, 0)) or bool(self._latencies)
        self._fixed_latency_ns = None
        if isinstance(latency, (int, float)) and not self._latencies:
            self._fixed_latency_ns = _to_ns(latency)

    def draw_latency_ns(self, pipe: Pipe) -> int:
        """Return the latency of the next segment, in whole microseconds."""
        if self._fixed_latency_ns is not None:
            return self._fixed_latency_ns
        latency = self._latency_ms
        for (source, target), special in self._latencies.items():
            if source in pipe.source.names and target in pipe.target.names:
                latency = special
        if callable(latency):
            latency = latency(pipe.source.label, pipe.target.label)
        elif isinstance(latency, tuple):
            latency = self._random.uniform(*latency)
        return _to_ns(latency)

    def split(self, data: bytes) -> tuple[bytes, ...]:
        """Split data at random into one or two segments."""
        if len(data) < 2 or self._random.random() < 0.5:
            return (data,)
        place = self._random.randrange(1, len(data))
        return data[:place], data[place:]

    # -- faults -----------------------------------------------------------------------------------

    def cut(self, source: str, target: str) -> None:
        """Let no data pass from one end to the other.

        Data on its way is held too, and a part of it may still arrive. As with TCP nothing is lost: held data arrives
        when the cut is mended, unless the sender has given up by then, after 127 s for a new connection and 15 minutes
        for an established one.
        """
        self._cuts.setdefault((source, target), False)
        self.has_cuts = True
        if self.has_latency:
            for forth in self._connections:
                for pipe in (forth, forth.back):
                    if self.is_cut(pipe):
                        pipe.stop_flying()

    def mend(self, source: str, target: str) -> None:
        """Undo `cut`; the held data arrives."""
        self._cuts.pop((source, target), None)
        self.has_cuts = bool(self._cuts)
        for pipe in [pipe for pipe in self._holding if not self.is_cut(pipe)]:
            del self._holding[pipe]
            pipe.release()

    def is_cut(self, pipe: Pipe) -> bool:
        """Whether a cut stops the pipe."""
        sources, targets = pipe.source.names, pipe.target.names
        return any(source in sources and target in targets for source, target in self._cuts)

    def has_stopped(self, source: str, target: str) -> bool:
        """Whether the cut in force from one end to another has stopped anything."""
        return self._cuts.get((source, target), False)

    def keep_held(self, pipe: Pipe) -> None:
        """Remember that a pipe holds data back."""
        self._holding[pipe] = None
        for source, target in self._cuts:
            if source in pipe.source.names and target in pipe.target.names:
                self._cuts[source, target] = True

    def connections_of(self, host: str) -> list[Pipe]:
        """Return the clients' pipes of a host's open connections."""
        return [pipe for pipe in self._connections if host in pipe.source.names]

    def reset(self, one: str, other: str) -> int:
        """Reset all connections between two ends, in both directions; return their number."""
        broken = 0
        for forth in list(self._connections):
            source, target = forth.source.names, forth.target.names
            if (one in source and other in target) or (other in source and one in target):
                forth.on_break()
                broken += 1
        return broken

    # -- hosts ------------------------------------------------------------------------------------

    @contextmanager
    def on_host(self, name: str) -> Iterator[None]:
        """Run the code inside, and the tasks that it creates, as a program on that host."""
        token = _current_host.set(name)
        try:
            yield
        finally:
            _current_host.reset(token)

    @property
    def current_host(self) -> str:
        """The host of the running code."""
        return _current_host.get()

    # -- connections ------------------------------------------------------------------------------

    def make_pipe(self, host: str | None, address: str, port: int) -> Pipe:
        """Return the pipe of a new connection from the current host; `host` is the target's name, if any."""
        self._made += 1
        number, client_host = self._made, self.current_host
        there, name = f"{address}:{port}", host or address
        client = End(client_host, frozenset({ANY, client_host}))
        server = End(there, frozenset({ANY, address, there, name, f"{name}:{port}"}))
        forth = Pipe(self, client, server, f"{number}>")
        forth.back = Pipe(self, server, client, f"{number}<")
        forth.back.back = forth
        self.core.trace.record("connect", number, client_host, there)
        return forth

    def add_connection(self, forth: Pipe) -> None:
        """Make an established connection subject to faults."""
        self._connections[forth] = None

    def remove_connection(self, forth: Pipe) -> None:
        """Forget a connection whose client's end is closed."""
        self._connections.pop(forth, None)


def _to_ns(latency_ms: float) -> int:
    return round(latency_ms * 1_000) * NS_PER_US


def _checked(latency_ms: Latency) -> Latency:
    """Return the latency. Raises ValueError if it is negative."""
    if not callable(latency_ms):
        low, high = latency_ms if isinstance(latency_ms, tuple) else (latency_ms, latency_ms)
        if not 0 <= low <= high:
            raise ValueError(
                f"latency {latency_ms!r} ms: it must not be negative, and a range has its lower bound first"
            )
    return latency_ms


class End(NamedTuple):
    """One end of a connection, as faults name it."""

    label: str
    """A client's host, or a server's `address:port`."""
    names: frozenset[str]
    """All names that a fault may use for it."""


class Pipe:
    """One direction of a connection: carries calls, which arrive in order once the network lets them pass."""

    __slots__ = ("_core", "_flying", "_give_up", "_held", "_last_ns", "_network", "back", "context",
                 "name", "on_break", "on_give_up", "opaque", "source", "target")  # fmt: skip

    outlives_receiver = True
    """Segments on their way arrive even if their receiver's process is dead."""

    def __init__(self, network: Network, source: End, target: End, name: str) -> None:
        self._network = network
        self._core = network.core
        self.source = source
        self.target = target
        self.back: Pipe
        """The other direction."""
        self.name = name
        """A short name that is the same in each run, for the trace."""
        self.context: Context | None = None
        """Context of the receiver's code, so that the sender's does not leak into it. None until the receiver has
        accepted."""
        self.opaque = False
        """Whether its bytes differ from run to run, as encrypted ones do; they are not traced then."""
        self.on_give_up: Callable[[], object] | None = None
        """Called when no data has passed for too long."""
        self.on_break: Callable[[], object]
        """Called when the network resets the connection."""
        self._flying: deque[_Segment] = deque()
        self._held: deque[_Segment] = deque()
        self._last_ns = 0
        self._give_up: TimerHandle | None = None

    def send(self, deliver: Callable[..., object], *args: Any) -> None:
        """Call `deliver(*args)` at the other end, after everything sent earlier."""
        network = self._network
        network.traffic += 1
        if network.has_cuts and network.is_cut(self):
            self._hold(deliver, args)
            return
        core = self._core
        now_ns = core.clock.now_ns
        due_ns = self._last_ns
        if network.has_latency:
            due_ns = max(due_ns, now_ns + network.draw_latency_ns(self))
        self._flying.append((deliver, args))
        arrive, context = self._arrive, self.context
        if context is None:
            arrive, context = self._arrive_early, core.processes.outside
        if due_ns > now_ns:
            self._last_ns = due_ns
            core.call_at_ns(due_ns, arrive, (), context)
        else:
            core.call_soon(arrive, context=context)

    @property
    def awaits_answer(self) -> bool:
        """Whether the last segment of the connection went in this direction."""
        return bool(self._held) or self._last_ns > self.back._last_ns

    @property
    def last_ns(self) -> int:
        """Virtual time at which the last segment of either direction arrives; 0 without latency."""
        return max(self._last_ns, self.back._last_ns)

    def _arrive(self) -> None:
        deliver, args = self._flying.popleft()
        deliver(*args)

    def _arrive_early(self) -> None:
        """Deliver data sent before the receiver accepted the connection, which it may have done by now."""
        context = self.context
        if context is None:
            self._arrive()
        elif self._core.processes.holder(context):
            self._core.call_soon(self._arrive, context=context)
        else:
            context.run(self._arrive)

    def stop_flying(self) -> None:
        """Hold data on its way when a cut begins; a part of the first segment still arrives."""
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
            self._give_up = self._core.loop.call_later(RETRANSMISSION_TIMEOUT_S, self._on_give_up)

    def release(self) -> None:
        """Send the held data; called by the network once no cut stops the pipe."""
        self._stop_waiting()
        segments, self._held = self._held, deque()
        for deliver, args in segments:
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
    """Replace a segment that a cut holds back."""
