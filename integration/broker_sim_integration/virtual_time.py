"""The simulator in virtual time, in this process: scenarios play on it without threads, sockets or waiting.

Scenarios and their clients are unchanged. In the context of `virtual_time` the stopwatch reads virtual time, pauses
advance it, and a connection is one of the virtual network, whose responses arrive while a client waits for one.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections import deque
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, cast

from broker_sim.errors import ClusterTimeoutError
from broker_sim_integration.broker_verbs import Fault, Reading
from broker_sim_integration.clients import raw_client, stopwatch
from broker_sim_integration.cluster_under_test.running_cluster import RunningCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim import VirtualCluster

    Listener = Callable[[str, "raw_client.RawConnection", Any, int], None]
    """Called with `send` or `answer` (a response), the connection, the message and its version."""

NS_PER_MS: Final = 1_000_000
CLIENTS: Final = "comparison"
"""The host of the virtual network on which the scenarios' clients run."""
_SIZE: Final = struct.Struct(">i")


class _Pause:
    """Advances virtual time in place of blocking a thread."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster

    def wait(self, duration_s: float) -> None:
        """Advance virtual time by this number of seconds."""
        self._cluster.advance(round(duration_s * 1000))


class _VirtualSocket(asyncio.Protocol):
    """A connection of the virtual network, with the methods of a socket that a raw connection calls."""

    def __init__(self, take: Callable[[bytes | None], None]) -> None:
        self._take = take
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport, which writes."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Pass on each complete frame."""
        self._received += data
        while len(self._received) >= _SIZE.size:
            end = _SIZE.size + _SIZE.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            frame = bytes(self._received[_SIZE.size : end])
            del self._received[:end]
            self._take(frame)

    def connection_lost(self, _: Exception | None) -> None:
        """Pass on None, because no further frame will arrive."""
        self._take(None)

    def sendall(self, data: bytes) -> None:
        """Write the bytes."""
        assert self._transport is not None
        self._transport.write(data)

    def shutdown(self, _how: int) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Do nothing: `shutdown` has closed it."""


class _NoThread:
    """The placeholder for the reader thread of a raw connection."""

    def join(self) -> None:
        """Return at once."""


@contextmanager
def virtual_time(cluster: VirtualCluster, listen: Listener = lambda *_: None) -> Iterator[RunningCluster]:
    """Play scenarios of this process on a virtual cluster; `listen` is called with each request and response."""

    def connect(self: raw_client.RawConnection, host: str, port: int, *, client_id: str = raw_client.CLIENT_ID) -> None:
        self._client_id = client_id
        self._next_correlation_id = 0
        self._lock = threading.Lock()
        self._awaited = deque()
        self._ended = threading.Event()
        self._reader = cast("threading.Thread", _NoThread())

        def take(frame: bytes | None) -> None:
            if frame is None:
                self._end()
            elif self._awaited:
                self._awaited.popleft().arrive(frame, stopwatch.now_ms())

        with cluster.loop.network.on_host(CLIENTS):
            opening = cluster.loop.create_connection(lambda: _VirtualSocket(take), host, port)
            _, protocol = cluster.wait_for(opening)
        self._socket = cast("Any", protocol)

    def send(self: raw_client.RawConnection, message: Any, version: int, expected: Any) -> Any:
        pending = send_really(self, message, version, expected)
        connections[pending] = self
        listen("send", self, message, version)
        return pending

    def frame(self: Any, timeout_ms: float = raw_client.ANSWER_TIMEOUT_MS) -> Any:
        with suppress(ClusterTimeoutError):  # the line below reports that there is no response
            cluster.wait_until(lambda: self.answered, timeout_ms / 1000)
        return frame_really(self, 0)

    def result(self: Any, timeout_ms: float = raw_client.ANSWER_TIMEOUT_MS) -> Any:
        reply = result_really(self, timeout_ms)
        if (connection := connections.pop(self, None)) is not None:
            listen("answer", connection, reply.message, self._version)
        return reply

    connections: dict[raw_client.Pending[Any], raw_client.RawConnection] = {}
    send_really, frame_really = raw_client.RawConnection.send, raw_client.Pending.frame
    result_really = raw_client.Pending.result
    with ExitStack() as stack:
        for owner, name, value in (
            (stopwatch, "perf_counter_ns", lambda: cluster.now_ms * NS_PER_MS),
            (stopwatch, "_NEVER", _Pause(cluster)),
            (raw_client.RawConnection, "__init__", connect),
            (raw_client.RawConnection, "send", send),
            (raw_client.Pending, "frame", frame),
            (raw_client.Pending, "result", result),
        ):
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        yield running_cluster(cluster)


def running_cluster(cluster: VirtualCluster) -> RunningCluster:
    """Return a virtual cluster in the form of the comparison; none of its brokers runs the controller."""
    return RunningCluster(
        bootstrap_servers=cluster.inside.bootstrap_servers,
        addresses={broker: node.address for broker, node in cluster.nodes.nodes.items()},
        verbs=cluster,
        faults=frozenset(Fault),
        readings=frozenset(Reading),
        purged=lambda broker: sum(one.statistics().purged for one in cluster.nodes.brokers[broker].purgatories),
        controller_broker=lambda: None,
        is_ours=True,
    )
