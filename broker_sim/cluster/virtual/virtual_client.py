"""A client in virtual time, and builders of its most common requests.

The client's bytes go through the virtual network to the same codec and handlers as those of a real client.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from broker_sim.cluster.virtual.invariants import violated
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.protocol.records import build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.runtime.virtual.loop import VirtualEventLoop

PRODUCE_VERSION = 9
FETCH_VERSION = 12
OFFSET_FETCH_VERSION = 9
"""The newest versions of these requests in which topics have names, not ids."""

Key = tuple[str, int]


def produce_request(
    *keys: Key,
    values: tuple[bytes, ...] = (b"value",),
    acks: int = -1,
    timeout_ms: int = 30_000,
    batch: bytes | None = None,
) -> messages.ProduceRequest:
    """Return a request that sends `values` (or a whole `batch`) to each (topic, partition)."""
    records = build_batch(values) if batch is None else batch
    return messages.ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            messages.ProduceRequest.TopicProduceData(
                name=topic, partition_data=[messages.ProduceRequest.PartitionProduceData(index=number, records=records)]
            )
            for topic, number in keys
        ],
    )


def fetch_request(
    *keys: Key,
    offset: int = 0,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 0x7FFFFFFF,
    partition_max_bytes: int = 1_048_576,
    leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    replica_id: int = -1,
    isolation_level: int = 0,
) -> messages.FetchRequest:
    """Return a fetch of each (topic, partition) from `offset`."""
    return messages.FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_epoch=-1,
        topics=[
            messages.FetchRequest.FetchTopic(
                topic=topic,
                partitions=[
                    messages.FetchRequest.FetchPartition(
                        partition=number,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=leader_epoch,
                        last_fetched_epoch=last_fetched_epoch,
                    )
                ],
            )
            for topic, number in keys
        ],
    )


def offset_fetch_request(group: str, key: Key, *, require_stable: bool) -> messages.OffsetFetchRequest:
    """Return a request for the committed offset of a group in a partition."""
    topic, number = key
    request = messages.OffsetFetchRequest
    topics = [request.OffsetFetchRequestTopics(name=topic, partition_indexes=[number])]
    groups = [request.OffsetFetchRequestGroup(group, topics=topics)]
    return request(groups=groups, require_stable=require_stable)


LENGTH_BYTES = 4


class PendingResponse:
    """A request, and its response once it has arrived."""

    __slots__ = ("api_key", "api_version", "correlation_id", "disconnected", "on_done", "received_ms",
                 "response", "sent_ms")  # fmt: skip

    def __init__(
        self,
        api_key: ApiKey,
        api_version: int,
        sent_ms: int,
        on_done: Callable[[PendingResponse], None] | None,
        correlation_id: int,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.sent_ms = sent_ms
        self.received_ms: int | None = None
        self.response: Any = None
        self.disconnected = False
        self.on_done = on_done

    @property
    def done(self) -> bool:
        """Whether the response has arrived or the connection was lost."""
        return self.received_ms is not None

    @property
    def elapsed_ms(self) -> int:
        """Virtual milliseconds from request to response."""
        assert self.received_ms is not None, "not answered yet"
        return self.received_ms - self.sent_ms

    def finish(self, now_ms: int, response: Any, *, disconnected: bool = False) -> None:
        """Record the response, or its loss; called once."""
        self.received_ms = now_ms
        self.response = response
        self.disconnected = disconnected
        if self.on_done is not None:
            self.on_done(self)


class _ClientConnection(asyncio.Protocol):
    """One connection to a broker; requests are queued until it is established."""

    def __init__(self, loop: VirtualEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._received = bytearray()
        self._waiting: deque[PendingResponse] = deque()
        self.is_open = True

    def send(self, request: bytes, pending: PendingResponse | None) -> None:
        """Send a request; `pending` gets its response (None: no response is expected)."""
        if pending is not None:
            self._waiting.append(pending)
        if self._transport is None:
            self._unsent.append(request)
        else:
            self._transport.write(request)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the queued requests."""
        self._transport = cast("asyncio.Transport", transport)
        if not self.is_open:
            self._transport.abort()
            return
        self._transport.writelines(self._unsent)
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        """Decode responses; `data` may be a part of a response or several responses."""
        received = self._received
        received += data
        while len(received) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(received[:LENGTH_BYTES], "big")
            if len(received) < end:
                return
            frame = bytes(received[LENGTH_BYTES:end])
            del received[:end]
            correlation_id = int.from_bytes(frame[:LENGTH_BYTES], "big")
            if not self._waiting or self._waiting[0].correlation_id != correlation_id:
                # A broker has answered twice, out of order, or without a request.
                violated("answered-once", f"unexpected response with the correlation id {correlation_id}")
                continue
            pending = self._waiting.popleft()
            _, response = decode_response(pending.api_key, pending.api_version, memoryview(frame))
            pending.finish(self._loop.clock.now_ms(), response)

    def close(self) -> None:
        """Abort the connection; all requests on it finish as disconnected."""
        if self._transport is not None:
            self._transport.abort()
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Finish all requests as disconnected: the broker has closed the connection, died, or refused it."""
        self.is_open = False
        while self._waiting:
            pending = self._waiting.popleft()
            pending.finish(self._loop.clock.now_ms(), None, disconnected=True)


class VirtualClient:
    """A client with one connection to each broker; requests on a connection are pipelined."""

    def __init__(self, host: str, loop: VirtualEventLoop, addresses: Mapping[int, tuple[str, int]]) -> None:
        self.host = host
        """Name of the client's host in the virtual network."""
        self._loop = loop
        self._addresses = addresses
        self._connections: dict[int, _ClientConnection] = {}
        self._correlation_id = 0

    def send(
        self, broker_id: int, message: Any, version: int, on_done: Callable[[PendingResponse], None] | None = None
    ) -> PendingResponse:
        """Send a request; the response arrives while the cluster is stepped.

        A request to a dead broker finishes as `disconnected`.
        """
        now_ms = self._loop.clock.now_ms()
        api_key = ApiKey(cast("int", message.API_KEY))
        self._correlation_id += 1
        pending = PendingResponse(api_key, version, now_ms, on_done, self._correlation_id)
        header = RequestHeader(api_key, version, self._correlation_id, self.host)
        is_answered = not (api_key is ApiKey.PRODUCE and message.acks == 0)
        request = b"".join(encode_request(header, message))
        self._connection(broker_id).send(request, pending if is_answered else None)
        if not is_answered:
            self._loop.call_soon(pending.finish, now_ms, None)
        return pending

    def disconnect(self, broker_id: int) -> None:
        """Abort the connection to a broker, as clients do after a timeout."""
        connection = self._connections.pop(broker_id, None)
        if connection is not None:
            connection.close()

    def _connection(self, broker_id: int) -> _ClientConnection:
        connection = self._connections.get(broker_id)
        if connection is None or not connection.is_open:
            connection = self._connections[broker_id] = _ClientConnection(self._loop)
            with self._loop.network.on_host(self.host):
                self._loop.create_task(self._connect(broker_id, connection))
        return connection

    async def _connect(self, broker_id: int, connection: _ClientConnection) -> None:
        try:
            await self._loop.create_connection(lambda: connection, *self._addresses[broker_id])
        except OSError as error:
            connection.connection_lost(error)
