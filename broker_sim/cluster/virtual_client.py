"""A client in virtual time: sends encoded requests over links and takes encoded responses.

Its bytes go through the same `Connection`, codec and handlers as those of a real client.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, cast

from broker_sim.cluster.virtual_transport import VirtualTransport
from broker_sim.network import Connection
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.cluster.nodes import Nodes
    from broker_sim.runtime.process import Process

__all__ = ["PendingResponse", "VirtualClient"]


class PendingResponse:
    """A request that was sent: its response, once there is one."""

    __slots__ = ("api_key", "api_version", "disconnected", "on_done", "received_ms", "response",
                 "sent_ms")  # fmt: skip

    def __init__(
        self,
        api_key: ApiKey,
        api_version: int,
        sent_ms: int,
        on_done: Callable[[PendingResponse], None] | None,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.sent_ms = sent_ms
        self.received_ms: int | None = None
        self.response: Any = None
        self.disconnected = False
        self.on_done = on_done

    @property
    def done(self) -> bool:
        """Whether it was answered, or never will be."""
        return self.received_ms is not None

    @property
    def elapsed_ms(self) -> int:
        """Virtual milliseconds from request to response."""
        assert self.received_ms is not None, "not answered yet"
        return self.received_ms - self.sent_ms


class _ClientConnection:
    """One connection to one life of one broker."""

    def __init__(self, client: VirtualClient, broker_id: int, nodes: Nodes) -> None:
        node = nodes.node(broker_id)
        assert node.broker is not None
        assert node.process is not None
        self.waiting: deque[PendingResponse] = deque()
        self.is_open = True
        self._client = client
        self._server = Connection(
            node.process,
            node.broker,
            node.config.socket_request_max_bytes,
            lambda _: None,
            lambda _: None,
        )
        links, client_id = nodes.links, client.node_id
        self._server.connection_made(
            VirtualTransport(
                lambda data: links.send(broker_id, client_id, self._on_response, data),
                lambda: links.send(broker_id, client_id, self.on_close),
            )
        )

        def send(data: bytes) -> None:
            links.send(client_id, broker_id, self._server.data_received, data)

        self.send = send

    def _on_response(self, data: bytes) -> None:
        if not self.is_open:
            return
        pending = self.waiting.popleft()
        _, pending.response = decode_response(
            pending.api_key, pending.api_version, memoryview(data)[4:]
        )
        self._client.finish(pending)

    def on_close(self) -> None:
        self.is_open = False
        while self.waiting:
            pending = self.waiting.popleft()
            pending.disconnected = True
            self._client.finish(pending)


class VirtualClient:
    """A client with one connection to each broker; requests on a connection are pipelined."""

    def __init__(self, node_id: int, process: Process, nodes: Nodes) -> None:
        self.node_id = node_id
        self._process = process
        self._nodes = nodes
        self._connections: dict[int, tuple[object, _ClientConnection]] = {}
        self._correlation_id = 0

    def send(
        self,
        broker_id: int,
        message: Any,
        version: int,
        on_done: Callable[[PendingResponse], None] | None = None,
    ) -> PendingResponse:
        """Send a request; the answer comes while the cluster is stepped.

        A dead broker answers with ``disconnected``, as a refused connection does.
        """
        api_key = ApiKey(cast("int", message.API_KEY))
        pending = PendingResponse(api_key, version, self._process.clock.now_ms(), on_done)
        connection = self._connection(broker_id)
        if connection is None:
            pending.disconnected = True
            self._process.call_soon(self.finish, pending)
            return pending
        self._correlation_id += 1
        header = RequestHeader(api_key, version, self._correlation_id, f"virtual-{self.node_id}")
        expects_answer = not (api_key is ApiKey.PRODUCE and message.acks == 0)
        if expects_answer:
            connection.waiting.append(pending)
        else:
            self._process.call_soon(self.finish, pending)
        connection.send(b"".join(encode_request(header, message)))
        return pending

    def finish(self, pending: PendingResponse) -> None:
        """Take note that a request has ended."""
        pending.received_ms = self._process.clock.now_ms()
        if pending.on_done is not None:
            pending.on_done(pending)

    def _connection(self, broker_id: int) -> _ClientConnection | None:
        broker = self._nodes.node(broker_id).broker
        if broker is None:
            return None
        known = self._connections.get(broker_id)
        if known is None or known[0] is not broker or not known[1].is_open:
            known = (broker, _ClientConnection(self, broker_id, self._nodes))
            self._connections[broker_id] = known
        return known[1]

    def on_broker_death(self, broker_id: int) -> None:
        """Learn that a broker's process has ended: its connections break."""
        known = self._connections.pop(broker_id, None)
        if known is not None:
            self._process.call_soon(known[1].on_close)
