"""A client that notes what happens to it, a server that sends back what it gets, on the virtual network."""

from __future__ import annotations

import asyncio

SERVER = ("127.0.0.1", 9092)


class Client(asyncio.Protocol):
    """Notes when it received what, and why its connection was lost."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.received: list[tuple[float, bytes]] = []
        self.lost = self.loop.create_future()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received.append((self.loop.time(), bytes(data)))

    def connection_lost(self, exc):
        self.lost.set_result(exc)

    @property
    def data(self) -> bytes:
        return b"".join(data for _, data in self.received)


class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)


async def connect(*, make_server=Echo, address=SERVER) -> Client:
    loop = asyncio.get_running_loop()
    if loop.tcp.ports.listener(*address) is None:
        await loop.create_server(make_server, *address)
    _, client = await loop.create_connection(Client, *address)
    return client
