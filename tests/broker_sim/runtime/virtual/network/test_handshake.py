"""Hosts, ports, and how connections are made on the virtual network."""

from __future__ import annotations

import asyncio
import socket
from contextvars import ContextVar

import pytest

from broker_sim.runtime.virtual import EscapeError, VirtualEventLoop

from .echo import SERVER, Client, Echo, connect


def test_address_without_a_machine_times_out(run):
    async def main():
        loop = asyncio.get_running_loop()
        with pytest.raises(TimeoutError, match="Connect call failed"):
            await loop.create_connection(Client, "10.9.9.9", 9092)
        return loop.time()

    assert run(main) == 127


def test_unknown_name_is_not_resolved(run):
    async def main():
        with pytest.raises(socket.gaierror, match=r"no 'nowhere\.example'"):
            await asyncio.open_connection("nowhere.example", 80)

    run(main)


def test_names_become_hosts_when_something_listens_there(run):
    async def main():
        loop = asyncio.get_running_loop()
        await loop.create_server(Echo, "broker-1.local", 9092)
        _, client = await loop.create_connection(Client, "broker-1.local", 9092)
        (info,) = await loop.getaddrinfo("broker-1.local", 9092)
        assert info[4] == client.transport.get_extra_info("peername")
        assert await loop.getnameinfo(info[4]) == (info[4][0], "9092")
        with loop.network.on_host("app-2"):
            _, other = await loop.create_connection(Client, "broker-1.local", 9092)
        loop.network.cut("app-2", "broker-1.local")
        for one in (client, other):
            one.transport.write(b"x")
        await asyncio.sleep(1)
        own = {one.transport.get_extra_info("sockname")[0] for one in (client, other)}
        return info[4], len(own), client.data, other.data

    assert run(main) == (("10.0.0.1", 9092), 2, b"x", b"")


def test_server_on_all_addresses_is_reached_by_each(run):
    async def main():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Echo, None, 9092)
        for host in ("127.0.0.1", "localhost", "::1", "127.0.0.7"):
            await loop.create_connection(Client, host, 9092)
        with pytest.raises(OSError, match="already in use"):
            loop.bind("127.0.0.1", 9092)
        server.close()
        loop.bind("127.0.0.1", 9092)

    run(main)


def test_server_on_two_hosts_is_one_server(run):
    async def main():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Echo, ["localhost", "b.local"], 9092)
        for host in ("localhost", "b.local"):
            await loop.create_connection(Client, host, 9092)
        return [sock.getsockname() for sock in server.sockets]

    assert run(main) == [("127.0.0.1", 9092), ("10.0.0.1", 9092)]


def test_bound_port_is_taken_but_refuses_until_a_server_listens(run):
    async def main():
        loop = asyncio.get_running_loop()
        bound = loop.bind("127.0.0.1", 0)
        address = bound.getsockname()
        with pytest.raises(OSError, match="already in use"):
            loop.bind(*address)
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Client, *address)
        server = await loop.create_server(Echo, sock=bound)
        await loop.create_connection(Client, *address)
        server.close()
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Client, *address)
        again = loop.bind(*address)
        again.close()
        again.close()

    run(main)


def test_free_ports_come_round_again():
    ports = VirtualEventLoop().tcp.ports
    bound = ports.bind("127.0.0.1", 0)
    drawn = [ports.draw_free() for _ in range(2 * (65_536 - 49_152))]
    assert bound.getsockname() == ("127.0.0.1", 49_152)
    assert set(drawn) == set(range(49_153, 65_536))


def test_server_that_is_not_started_refuses(run):
    async def main():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Echo, *SERVER, start_serving=False)
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Client, *SERVER)
        await server.start_serving()
        await loop.create_connection(Client, *SERVER)
        assert server.is_serving()

    run(main)


def test_server_that_closes_during_the_handshake_resets(run):
    async def main():
        loop = asyncio.get_running_loop()
        loop.network.latency_ms = 10
        server = await loop.create_server(Echo, *SERVER)
        loop.call_later(0.025, server.close)
        _, client = await loop.create_connection(Client, *SERVER)
        return type(await client.lost), loop.time()

    assert run(main) == (ConnectionResetError, 0.04)


def test_connection_that_waits_for_its_server_is_reset_when_that_closes(run):
    async def main():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Echo, *SERVER)
        loop.tcp.ports.listener(*SERVER).hold()
        _, client = await loop.create_connection(Client, *SERVER)
        client.transport.write(b"x")
        await asyncio.sleep(1)
        assert not client.lost.done()
        server.close()
        return type(await client.lost), client.received

    assert run(main) == (ConnectionResetError, [])


def test_cancelled_attempt_to_connect_is_never_seen_by_the_server(run):
    async def main():
        loop = asyncio.get_running_loop()
        loop.network.latency_ms = 10
        accepted = []
        await loop.create_server(lambda: accepted.append(loop.time()) or Echo(), *SERVER)
        for timeout_ms in (5, 15, 19.999):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(timeout_ms / 1000):
                    await loop.create_connection(Client, *SERVER)
        await asyncio.sleep(1)
        return accepted

    assert run(main) == []


def test_attempt_cancelled_when_it_has_just_succeeded_closes_the_connection(run):
    async def main():
        loop = asyncio.get_running_loop()
        loop.network.latency_ms = 10
        server = Client()
        await loop.create_server(lambda: server, *SERVER)
        attempt = loop.create_task(loop.create_connection(Client, *SERVER))
        # The answer arrives after 20 ms. The task is cancelled then too, and before it goes on.
        loop.call_later(0.015, loop.call_later, 0.005, attempt.cancel)
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert loop.time() == 0.02
        return await server.lost, loop.time()

    assert run(main) == (None, 0.03)


def test_code_of_the_server_runs_in_the_servers_context(run):
    side = ContextVar("side", default="nobody")

    async def main():
        seen = []

        class Server(asyncio.Protocol):
            def connection_made(self, transport):
                seen.append(side.get())

            def data_received(self, data):
                seen.append(side.get())

            def connection_lost(self, exc):
                seen.append(side.get())

        side.set("server")
        await asyncio.get_running_loop().create_server(Server, *SERVER)
        side.set("client")
        client = await connect()
        client.transport.write(b"x")
        client.transport.close()
        await asyncio.sleep(1)
        return seen

    assert run(main) == ["server"] * 3


def test_server_waits_for_its_connections_as_asyncio_does(run):
    async def main():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Echo, *SERVER)
        client = await connect()
        server.close()
        client.transport.write(b"still served")
        loop.call_later(5, client.transport.close)
        await server.wait_closed()
        await asyncio.sleep(6)
        return client.data

    assert run(main) == b"still served"


@pytest.mark.parametrize("method", ["create_server", "create_connection"])
def test_real_sockets_are_refused(run, method):
    async def main():
        await getattr(asyncio.get_running_loop(), method)(asyncio.Protocol, sock=real)

    with socket.socket() as real, pytest.raises(EscapeError, match=rf"(?s){method}\(sock=.*, in main"):
        run(main)


def test_sockets_that_the_program_makes_stand_for_ports_and_connections(run):
    """aiohttp makes them on both sides."""

    async def main():
        loop = asyncio.get_running_loop()
        with socket.socket() as listening, socket.socket() as connecting, socket.socket() as other:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            address = listening.getsockname()
            with pytest.raises(OSError, match="in use"):
                other.bind(address)
            server = await loop.create_server(Echo, sock=listening)
            await loop.sock_connect(connecting, address)
            transport, client = await loop.create_connection(Client, sock=connecting)
            transport.write(b"hello")
            await asyncio.sleep(1)
            closed = listening.fileno(), connecting.fileno()
        transport.close()
        server.close()
        return address, client.data, closed

    assert run(main) == run(main) == (("127.0.0.1", 49152), b"hello", (-1, -1))
