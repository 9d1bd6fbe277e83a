"""The network of a virtual loop: TCP in memory, with latency that follows from the seed, and faults.

Where it is simpler than a real one: it has IPv4 and TCP only; a name has one address; and what a
cut held back arrives at once when the cut is mended, not at the next retransmission.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.virtual.clock import NS_PER_US
from broker_sim.runtime.virtual.network.handshake import Handshake
from broker_sim.runtime.virtual.network.pipe import End, Pipe
from broker_sim.runtime.virtual.network.ports import ANY_ADDRESS, LOOPBACK, BoundPort, Hosts, Ports
from broker_sim.runtime.virtual.network.sockets import Sockets
from broker_sim.runtime.virtual.network.transport import MemoryTransport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.runtime.virtual.loop import VirtualEventLoop

ANY = "*"
"""Stands for every end of a connection in a fault."""
DEFAULT_HOST = "client"
WINDOW_BYTES = 256 * 1024

Latency = float | tuple[float, float] | Callable[[str, str], float]
"""Milliseconds one way: fixed, drawn from a range, or given by (source label, target label)."""

_current_host: ContextVar[str] = ContextVar("virtual_host", default=DEFAULT_HOST)


class Network:
    """All hosts, ports and connections of one loop, and what is wrong with them.

    A fault names two ends and works in the direction from `source` to `target`. An end that
    connects is called by its host (`"client"`, or what `on_host` said); an end that listens by its
    address (`"127.0.0.1"`), its address and port (`"127.0.0.1:9092"`), or its name; `ANY` is every end.
    """

    def __init__(self, loop: VirtualEventLoop) -> None:
        self.loop = loop
        self.hosts = Hosts()
        self.ports = Ports()
        self.sockets = Sockets(self)
        self.context = Context()
        """What the network itself runs in, as the kernels of its hosts: no process's."""
        self.window_bytes = WINDOW_BYTES
        """How much a connection takes in before its sender has to buffer: the kernels' buffers."""
        self.fragments = False
        """Whether chance cuts what is sent at once into what arrives at once."""
        self.has_cuts = False
        self.has_latency = False
        self._random = loop.stream("network")
        self._latency_ms: Latency = 0
        self._latencies: dict[tuple[str, str], Latency] = {}
        self._fixed_latency_ns: int | None = 0
        """How long every segment takes; None where that differs."""
        self._cuts: set[tuple[str, str]] = set()
        self._holding: dict[Pipe, None] = {}
        self._clients: dict[int, MemoryTransport] = {}
        self._made = 0

    # -- latency ----------------------------------------------------------------------------------

    @property
    def latency_ms(self) -> Latency:
        """How long every segment takes unless `set_latency` says otherwise; settable."""
        return self._latency_ms

    @latency_ms.setter
    def latency_ms(self, latency_ms: Latency) -> None:
        self._latency_ms = _checked(latency_ms)
        self._look_for_latency()

    def set_latency(self, source: str, target: str, latency_ms: Latency | None) -> None:
        """Set the latency from one end to another; None takes that back."""
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
        """Return how long the next segment takes, in whole microseconds."""
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
        """Cut data into what arrives at once: in two, or not at all, as chance has it."""
        if len(data) < 2 or self._random.random() < 0.5:
            return (data,)
        place = self._random.randrange(1, len(data))
        return data[:place], data[place:]

    # -- faults -----------------------------------------------------------------------------------

    def cut(self, source: str, target: str) -> None:
        """Let nothing pass from one end to the other.

        What is on its way is held too, and data may be broken in the middle. As with TCP nothing
        is lost: it arrives when the cut is mended, unless the sender has given up by then, after
        127 s for a new connection and 15 minutes for one that was made before.
        """
        self._cuts.add((source, target))
        self.has_cuts = True
        if self.has_latency:
            for transport in self._clients.values():
                for pipe in (transport.pipe, transport.peer.pipe):
                    if self.is_cut(pipe):
                        pipe.stop_flying()

    def mend(self, source: str, target: str) -> None:
        """Undo `cut`; what was held back arrives."""
        self._cuts.discard((source, target))
        self.has_cuts = bool(self._cuts)
        for pipe in [pipe for pipe in self._holding if not self.is_cut(pipe)]:
            del self._holding[pipe]
            pipe.release()

    def is_cut(self, pipe: Pipe) -> bool:
        """Whether nothing passes there."""
        sources, targets = pipe.source.names, pipe.target.names
        return any(source in sources and target in targets for source, target in self._cuts)

    def keep_held(self, pipe: Pipe) -> None:
        """Remember that a pipe holds something back."""
        self._holding[pipe] = None

    def reset(self, one: str, other: str) -> int:
        """Break the connections between two ends off, both ways; return how many there were."""
        broken = 0
        for transport in list(self._clients.values()):
            source, target = transport.pipe.source.names, transport.pipe.target.names
            if (one in source and other in target) or (other in source and one in target):
                transport.break_off()
                broken += 1
        return broken

    # -- hosts ------------------------------------------------------------------------------------

    @contextmanager
    def on_host(self, name: str) -> Iterator[None]:
        """Run the code inside, and the tasks that it makes, as a program on that host."""
        token = _current_host.set(name)
        try:
            yield
        finally:
            _current_host.reset(token)

    def bind(self, host: str | None, port: int) -> BoundPort:
        """Take a port, 0 for a free one; a host that was unknown is one from now on.

        Raises OSError (EADDRINUSE) if the port is taken.
        """
        return self.ports.bind(self.hosts.add(host or ""), port)

    # -- connections ------------------------------------------------------------------------------

    async def connect(self, host: str | None, port: int, local: Any = None) -> MemoryTransport:
        """Return the client's end of a new connection; its protocol is yet to be given.

        Raises ConnectionRefusedError, TimeoutError or `socket.gaierror` as the real one does.
        """
        address = self.hosts.resolve(host)
        if address == ANY_ADDRESS:
            address = LOOPBACK
        client_host = _current_host.get()
        self._made += 1
        number = self._made
        there, name = f"{address}:{port}", host or address
        client = End(client_host, frozenset({ANY, client_host}))
        server = End(there, frozenset({ANY, address, there, name, f"{name}:{port}"}))
        forth = Pipe(self, client, server, f"{number}>")
        back = Pipe(self, server, client, f"{number}<")
        if local is None:
            own = LOOPBACK if address == LOOPBACK else self.hosts.add(client_host)
            local = (own, self.ports.draw_free())
        transport = MemoryTransport(self, forth, local, (address, port), copy_context())
        transport.pair(MemoryTransport(self, back, (address, port), local, copy_context()))
        self.loop.trace.record("connect", number, client_host, there)
        await Handshake(self, transport).establish()
        self._clients[number] = transport
        transport.on_gone = lambda: self._clients.pop(number, None)
        return transport


def _to_ns(latency_ms: float) -> int:
    return round(latency_ms * 1_000) * NS_PER_US


def _checked(latency_ms: Latency) -> Latency:
    """Return it; ValueError where time would go back."""
    if not callable(latency_ms):
        low, high = latency_ms if isinstance(latency_ms, tuple) else (latency_ms, latency_ms)
        if not 0 <= low <= high:
            raise ValueError(f"latency {latency_ms!r} ms: give what is not negative, lower bound first")
    return latency_ms
