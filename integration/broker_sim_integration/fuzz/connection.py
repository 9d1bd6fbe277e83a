"""A raw connection on the event loop, in real or virtual time; many can wait at once."""

from __future__ import annotations

import asyncio
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING

from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request

if TYPE_CHECKING:
    from broker_sim.protocol.message import Message

CLIENT_ID = "fuzz"
CONNECT_TIMEOUT_S = 10.0
_SIZE = Struct(">i")


class AsyncConnection:
    """One connection to a broker, which responds in the order of the requests. For a single event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._awaited: deque[tuple[int, int, asyncio.Future[Message | None]]] = deque()
        self._correlation_id = 0
        self.ended = False
        """Whether either side has closed it."""
        self._task = asyncio.get_running_loop().create_task(self._read_answers())

    @classmethod
    async def open(cls, host: str, port: int) -> AsyncConnection:
        """Connect. Raises OSError and TimeoutError."""
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return cls(*await asyncio.open_connection(host, port))

    def send(self, message: Message, version: int) -> asyncio.Future[Message | None]:
        """Send a request; the result is its response, None if the connection ends or the request has none.

        Raises ProtocolError if the message does not fit the version.
        """
        assert message.API_KEY is not None
        header = RequestHeader(ApiKey(message.API_KEY), version, self._correlation_id, CLIENT_ID)
        frame = b"".join(encode_request(header, message))
        self._correlation_id += 1
        answer: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        if self.ended or getattr(message, "acks", None) == 0:
            answer.set_result(None)
        else:
            self._awaited.append((message.API_KEY, version, answer))
        if not self.ended:
            self._writer.write(frame)
        return answer

    @property
    def waits(self) -> bool:
        """Whether a request has no response yet."""
        return bool(self._awaited)

    async def close(self) -> None:
        """Close at once; requests without a response get None."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _read_answers(self) -> None:
        try:
            while True:
                (size,) = _SIZE.unpack(await self._reader.readexactly(_SIZE.size))
                frame = await self._reader.readexactly(size)
                api_key, version, answer = self._awaited.popleft()
                if not answer.done():
                    answer.set_result(decode_response(api_key, version, frame)[1])
        except (OSError, asyncio.IncompleteReadError):
            pass  # the broker has closed it
        finally:
            self.ended = True
            self._writer.close()
            for _, _, answer in self._awaited:
                if not answer.done():
                    answer.set_result(None)
            self._awaited.clear()
