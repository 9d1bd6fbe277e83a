"""The broker's own side of a connection works on the virtual network as on real sockets."""

from __future__ import annotations

import asyncio

from broker_sim_purgatory import SystemClock

from broker_sim.network.connection import Connection
from broker_sim.runtime.process import Process

SIZES = (1, 10, 1_000, 40_000, 1_000_000, 3_000_000, 5)
"""Sizes of frames: read together, read into a place of their own, and read in pieces."""


class Scheduler:
    """As much of a scheduler as a process asks for."""

    clock = SystemClock()

    def __init__(self, loop) -> None:
        self.call_soon = loop.call_soon
        self.call_soon_threadsafe = loop.call_soon_threadsafe
        self.call_later = loop.call_later

    def report_error(self, message, error) -> None:
        raise error


class Sizes:
    """Answers each request with its size, in a later turn of the loop."""

    def handle_frame(self, frame, connection, respond) -> None:
        size = len(frame)
        asyncio.get_running_loop().call_soon(respond, [b"%d" % size, bytearray(b";")])


class Served:
    """One broker's listening port, and a client's streams to it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.process = Process("broker", Scheduler(self._loop))
        self.lost = self._loop.create_future()

    async def __aenter__(self):
        self._server = await self._loop.create_server(self._accept, "127.0.0.1", 0)
        address = self._server.sockets[0].getsockname()
        self.reader, self.writer = await asyncio.open_connection(*address)
        return self

    def _accept(self) -> Connection:
        self.connection = Connection(
            self.process, Sizes(), 10_000_000, lambda _: None, lambda _: self.lost.set_result(None)
        )
        return self.connection

    async def __aexit__(self, *_):
        self._server.close()
        self.writer.close()
        await self.lost

    def send(self, *sizes) -> None:
        self.writer.write(b"".join(size.to_bytes(4, "big") + bytes(size) for size in sizes))

    async def answers(self, count) -> list[int]:
        return [int((await self.reader.readuntil(b";"))[:-1]) for _ in range(count)]


def test_requests_of_all_sizes_are_answered_in_order(run_either):
    async def main():
        async with Served() as served:
            served.send(*SIZES)
            served.send(*SIZES[::-1])
            return await served.answers(2 * len(SIZES))

    assert run_either(main) == [*SIZES, *SIZES[::-1]]


def test_request_in_single_bytes_is_put_together(run_either):
    async def main():
        async with Served() as served:
            for byte in (10).to_bytes(4, "big") + bytes(10):
                served.writer.write(bytes([byte]))
                await asyncio.sleep(0)
            return await served.answers(1)

    assert run_either(main) == [10]


def test_paused_broker_answers_when_it_continues(run_either):
    async def main():
        async with Served() as served:
            served.send(1)
            assert await served.answers(1) == [1]
            served.process.pause()
            served.send(2, 3_000_000, 4)
            answer = asyncio.create_task(served.answers(3))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not answer.done()
            served.process.resume()
            # A broker that continues looks at its connections again.
            served.connection.hold()
            served.connection.release()
            return await answer

    assert run_either(main) == [2, 3_000_000, 4]


def test_killed_broker_ends_its_connections(run_either):
    async def main():
        async with Served() as served:
            served.send(1)
            await served.answers(1)
            served.connection.abort()
            return await served.reader.read()

    assert run_either(main) == b""
