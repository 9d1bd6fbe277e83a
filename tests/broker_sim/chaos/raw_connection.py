"""A connection of a worker that speaks Kafka's protocol itself."""

import asyncio

from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request

ANSWER_S = 5


class Connection:
    """A connection to one broker, with one request at a time."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer
        self._correlation_id = 0

    @classmethod
    async def open(cls, address):
        return cls(*await asyncio.wait_for(asyncio.open_connection(*address), ANSWER_S))

    async def ask(self, message, version):
        """Return the answer. Raises OSError, TimeoutError or EOFError; the connection is closed then."""
        api_key = ApiKey(message.API_KEY)
        self._correlation_id += 1
        header = RequestHeader(api_key, version, self._correlation_id, "share")
        try:
            async with asyncio.timeout(ANSWER_S):
                self._writer.writelines(map(bytes, encode_request(header, message)))
                size = int.from_bytes(await self._reader.readexactly(4), "big")
                frame = await self._reader.readexactly(size)
        except BaseException:
            self._writer.transport.abort()
            raise
        return decode_response(api_key, version, memoryview(frame))[1]

    def close(self):
        self._writer.transport.abort()
