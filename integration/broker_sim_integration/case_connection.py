"""A connection to one broker, real or simulated, for the cases of a recorded table; also in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from broker_sim.protocol.message import Message

SET, DELETE = 0, 1
ANSWER_S: Final = 60
CLIENT_ID: Final = "shop"
"""The client id of every request."""


class Connection:
    """A connection with one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: tuple[str, int]) -> Connection:
        """Return a connection to the broker at that address."""
        return cls(*await asyncio.open_connection(*address))

    async def ask(self, message: Message, version: int) -> Any:
        """Send a request; return the response."""
        assert message.API_KEY is not None
        key = ApiKey(message.API_KEY)
        header = RequestHeader(key, version, 1, CLIENT_ID)
        self._writer.write(b"".join(map(bytes, encode_request(header, message))))
        async with asyncio.timeout(ANSWER_S):
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            return decode_response(key, version, memoryview(await self._reader.readexactly(size)))[1]

    async def alter(self, kind: int, name: str, configs: Mapping[str, str | None]) -> list[Any]:
        """Set configurations of a resource, or remove those that are None; return error and message."""
        request = messages.IncrementalAlterConfigsRequest
        changes = [
            request.AlterableConfig(key, DELETE if value is None else SET, value) for key, value in configs.items()
        ]
        answer = await self.ask(request([request.AlterConfigsResource(kind, name, changes)]), 1)
        (result,) = answer.responses
        return [ErrorCode(result.error_code).name, result.error_message]

    def close(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()


async def eventually(look: Callable[[], Awaitable[Any]], is_there: Callable[[Any], bool], within_s: float) -> Any:
    """Call `look()` until `is_there` accepts its result or the time is over; return the last result."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + within_s
    while True:
        seen = await look()
        if is_there(seen) or loop.time() > end_s:
            return seen
        await asyncio.sleep(0.05)


def play_on_simulated(
    play: Callable[[tuple[str, int], str], Coroutine[Any, Any, list[Any]]], case: str, configs: Mapping[str, str]
) -> list[Any]:
    """Return the result of `play(address, case)` on a simulated broker of Kafka 4.4, in virtual time."""
    with VirtualCluster(1, configs=configs, as_version="4.4") as cluster:
        return cluster.wait_for(play(cluster.inside.listeners.addresses_of("PLAINTEXT")[1], case))
