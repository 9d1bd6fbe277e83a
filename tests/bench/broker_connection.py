"""Connections to brokers without a client library, for requests and answers of our own making.

`Connection` speaks our own codec. `FramedConnection` and `Template` are for many clients in one process:
frames that are encoded once and take an id, answers that nobody decodes.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request

VERSIONS = {
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.FETCH: 11,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.HEARTBEAT: 3,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
    ApiKey.INIT_PRODUCER_ID: 3,
    ApiKey.JOIN_GROUP: 5,
    ApiKey.METADATA: 12,
    ApiKey.OFFSET_COMMIT: 7,
    ApiKey.PRODUCE: 8,
    ApiKey.SHARE_FETCH: 2,
    ApiKey.SHARE_GROUP_HEARTBEAT: 1,
    ApiKey.SYNC_GROUP: 3,
}
"""Versions that every peer serves."""
RETRY_S = 0.05
NONE = 0
MEMBER = "<member>"
"""Stands in a template for a member's id."""
_SIZE = struct.Struct(">i")
_LENGTH = struct.Struct(">h")


class FramedConnection(asyncio.Protocol):
    """Cuts what a broker sends into frames."""

    def __init__(self) -> None:
        self.transport: Any = None
        self._buffer = bytearray()

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand over every whole frame, without its size."""
        buffer = self._buffer
        if not buffer and len(data) - 4 == _SIZE.unpack_from(data)[0]:
            self.frame_received(data[4:])
            return
        buffer += data
        start = 0
        while len(buffer) - start >= 4:
            (size,) = _SIZE.unpack_from(buffer, start)
            if len(buffer) - start - 4 < size:
                break
            frame = bytes(buffer[start + 4 : start + 4 + size])
            start += 4 + size
            self.frame_received(frame)
        del buffer[:start]

    def frame_received(self, frame: bytes) -> None:
        """Take an answer."""
        raise NotImplementedError

    def close(self) -> None:
        """Close it without a word."""
        self.transport.abort()


class Connection(FramedConnection):
    """One connection; answers come in the order of the requests."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[tuple[ApiKey, asyncio.Future[Any]]] = deque()

    @classmethod
    async def open(cls, address: tuple[str, int]) -> "Connection":
        """Connect to a broker."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, *address)
        return connection

    def frame_received(self, frame: bytes) -> None:
        """Hand the answer to who waits for it."""
        api_key, future = self._waiting.popleft()
        if not future.done():
            future.set_result(decode_response(api_key, VERSIONS[api_key], frame)[1])

    def connection_lost(self, error: Exception | None) -> None:
        """Fail what waits."""
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(error or ConnectionError("the broker closed the connection"))

    def request(self, api_key: ApiKey, message: Any) -> asyncio.Future[Any]:
        """Send a request; returns the future of its answer."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((api_key, future))
        self.transport.write(encode_frame(api_key, message))
        return future


def encode_frame(api_key: ApiKey, message: Any) -> bytes:
    """Return a whole request, its size first."""
    header = RequestHeader(api_key, VERSIONS[api_key], 1, "bench")
    return b"".join(encode_request(header, message))


async def coordinator_of(servers: Sequence[tuple[str, int]], group_id: str) -> tuple[str, int]:
    """Return the address of the group's coordinator; it may have to make its topic first."""
    connection = await Connection.open(servers[0])
    try:
        while True:
            request = messages.FindCoordinatorRequest(key=group_id)
            found = await connection.request(ApiKey.FIND_COORDINATOR, request)
            if found.error_code == NONE:
                return found.host, found.port
            await asyncio.sleep(RETRY_S)
    finally:
        connection.close()


class Template:
    """A request that differs from member to member in the member's id only."""

    def __init__(self, api_key: ApiKey, message: Any) -> None:
        frame = encode_frame(api_key, message)
        self._before, self._after = frame[_SIZE.size :].split(_LENGTH.pack(len(MEMBER)) + MEMBER.encode())

    def fill(self, member_id: bytes) -> bytes:
        """Return the frame of that member."""
        size = len(self._before) + _LENGTH.size + len(member_id) + len(self._after)
        length = _LENGTH.pack(len(member_id))
        return b"".join((_SIZE.pack(size), self._before, length, member_id, self._after))
