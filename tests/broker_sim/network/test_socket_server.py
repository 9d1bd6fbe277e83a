"""A server on real sockets, on asyncio's loop and on uvloop's; its broker echoes requests."""

import asyncio
import select
import socket
import struct
import sys
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from broker_sim.config import BrokerConfig, Endpoint
from broker_sim.network import SocketServer, socket_server
from broker_sim.network.login import ListenerLogin, ListenerSecurity
from broker_sim.runtime.process import Process
from broker_sim.runtime.scheduler import Scheduler
from broker_sim.security import KafkaPrincipal

HOST = "127.0.0.1"


def port_of(server):
    (endpoint,) = server.endpoints
    return endpoint.port


class EchoBroker:
    def __init__(self):
        self.requests = []

    def handle_frame(self, frame, connection, send_response):
        self.requests.append(bytes(frame))
        send_response([len(frame).to_bytes(4, "big"), frame])


class Client:
    """Sends frames and reads answers; made by `connect`."""

    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, server, ip=HOST):
        return await cls.connect_to(port_of(server), ip)

    @classmethod
    async def connect_to(cls, port, ip=HOST):
        return cls(*await asyncio.open_connection(HOST, port, local_addr=(ip, 0)))

    def send(self, data):
        self._writer.write(len(data).to_bytes(4, "big") + data)

    async def answer(self):
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return await self._reader.readexactly(size)

    async def request(self, data):
        self.send(data)
        return await self.answer()

    async def is_closed_by_broker(self):
        try:
            async with asyncio.timeout(30):
                return await self._reader.read() == b""
        except ConnectionError:
            return True

    @property
    def socket(self):
        return self._writer.get_extra_info("socket")

    async def close(self):
        self._writer.close()
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop])
def run(request):
    """Return a function that runs a coroutine to its end on the loop."""
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


@asynccontextmanager
async def serving(*, broker=None, port=0, is_held=False, listeners=("PLAINTEXT",), security=None, **configs):
    """A server that accepts clients; `is_held` says that they are held from the beginning."""
    server = SocketServer([Endpoint(name, HOST, port) for name in listeners])
    try:
        if is_held:
            server.hold_clients("PLAINTEXT")
        process = Process("broker-1", Scheduler(asyncio.get_running_loop()))
        await server.start(process, broker or EchoBroker(), BrokerConfig(**configs), security=security or {})
        yield server
    finally:
        server.close()


@pytest.mark.parametrize("size", [1, 40_000, 3_000_000])
def test_requests_of_all_sizes_are_answered_in_order(run, size):
    requests = [b"before", b"x" * size, b"after"]

    async def main():
        async with serving() as server:
            client = await Client.connect(server)
            for request in requests:
                client.send(request)
            answers = [await client.answer() for _ in requests]
            await client.close()
            return answers

    assert run(main()) == requests


def test_listener_that_moves_leaves_its_clients_behind_and_those_of_others_connected(run):
    async def main():
        async with serving(listeners=("TESTS", "LASTING")) as server:
            former, lasting = (endpoint.port for endpoint in server.endpoints)
            client = await Client.connect_to(former)
            stays = await Client.connect_to(lasting)
            await client.request(b"before")
            await stays.request(b"before")

            await server.move(["TESTS"])

            moved, still = (endpoint.port for endpoint in server.endpoints)
            assert (moved != former, still) == (True, lasting)
            assert await client.is_closed_by_broker()
            assert await stays.request(b"after") == b"after"
            with pytest.raises(ConnectionRefusedError):
                await Client.connect_to(former)
            again = await Client.connect_to(moved)
            assert await again.request(b"after") == b"after"
            assert {connection.listener for connection in server.connections} == {"TESTS", "LASTING"}
            for each in (client, stays, again):
                await each.close()

    run(main())


def is_free(port):
    """Whether the system would give the port to a listener that takes any free one."""
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def test_former_ports_stay_taken_where_clients_know_them(run, monkeypatch):
    monkeypatch.setattr(socket_server, "FORMER_PORTS", 2)
    closes_at_once = struct.pack("ii", 1, 0)

    async def move(server, *, has_client):
        """Return the port that the server had, without a connection that the system still remembers."""
        former = port_of(server)
        client = await Client.connect(server) if has_client else None
        if client is not None:
            await client.request(b"x")
        await server.move(["PLAINTEXT"])
        if client is not None:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, closes_at_once)
            await client.close()
        return former

    async def main():
        async with serving() as server:
            unknown = await move(server, has_client=False)
            known = [await move(server, has_client=True) for _ in range(3)]
            return [is_free(port) for port in (unknown, *known)]

    assert run(main()) == [True, True, False, False]


def test_request_above_the_configured_size_closes_the_connection(run):
    async def main():
        async with serving(socket_request_max_bytes=10) as server:
            client = await Client.connect(server)
            assert await client.request(b"x" * 10) == b"x" * 10
            client.send(b"x" * 11)
            assert await client.is_closed_by_broker()
            await client.close()

    run(main())


def test_connection_above_the_limit_is_served_when_another_one_ends(run):
    async def main():
        broker = EchoBroker()
        async with serving(broker=broker, max_connections=2) as server:
            first, second = await Client.connect(server), await Client.connect(server)
            await first.request(b"first")
            await second.request(b"second")
            third, fourth = await Client.connect(server), await Client.connect(server)
            third.send(b"third")
            fourth.send(b"fourth")
            for _ in range(10):
                # One loop serves all, and it had the third client's request before these.
                await first.request(b"again")
            assert set(broker.requests) == {b"first", b"second", b"again"}
            await second.close()
            assert await third.answer() == b"third"
            assert b"fourth" not in broker.requests
            for client in (first, third, fourth):
                await client.close()

    run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="only there every 127.x.y.z is this machine")
def test_connection_above_the_limit_per_ip_is_closed_and_others_are_not(run):
    async def main():
        async with serving(max_connections_per_ip=1) as server:
            first = await Client.connect(server)
            await first.request(b"first")
            second = await Client.connect(server)
            assert await second.is_closed_by_broker()
            elsewhere = await Client.connect(server, "127.0.0.2")
            assert await elsewhere.request(b"elsewhere") == b"elsewhere"
            await first.close()
            await elsewhere.request(b"the broker has seen the first one's end")
            again = await Client.connect(server)
            assert await again.request(b"again") == b"again"
            for client in (second, elsewhere, again):
                await client.close()

    run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="how many wait is for the system to say")
@pytest.mark.parametrize("backlog", [1, 7])
def test_backlog_limits_the_clients_that_wait_to_be_accepted(run, backlog):
    async def main():
        async with serving(socket_listen_backlog_size=backlog) as server:
            with ExitStack() as stack:
                clients = [stack.enter_context(socket.socket()) for _ in range(backlog + 5)]
                # Nothing is awaited here, so the server accepts nobody meanwhile.
                for client in clients:
                    client.setblocking(False)
                    client.connect_ex((HOST, port_of(server)))
                _, connected, _ = select.select([], clients, [], 0)
                return len(connected)

    assert run(main()) == backlog + 1


def test_closed_server_breaks_its_connections_and_gives_its_port_back(run):
    async def main():
        async with serving() as server:
            client = await Client.connect(server)
            await client.request(b"one")
        assert await client.is_closed_by_broker()
        await client.close()
        with pytest.raises(ConnectionRefusedError):
            await Client.connect(server)
        async with serving(port=port_of(server)) as again:
            client = await Client.connect(again)
            assert await client.request(b"two") == b"two"
            await client.close()

    run(main())


def test_server_that_was_never_started_gives_its_port_back(run):
    async def main():
        server = SocketServer([Endpoint("PLAINTEXT", HOST, 0)])
        server.close()
        SocketServer([Endpoint("PLAINTEXT", HOST, port_of(server))]).close()

    run(main())


@pytest.mark.parametrize("before_start", [True, False])
def test_held_clients_are_answered_when_they_are_released(run, before_start):
    async def main():
        broker = EchoBroker()
        async with serving(broker=broker, is_held=before_start) as server, serving() as neighbour:
            server.hold_clients("PLAINTEXT")
            client, other = await Client.connect(server), await Client.connect(neighbour)
            client.send(b"held")
            for _ in range(10):
                # One loop serves both, and it had the held client's request before these.
                await other.request(b"other")
            assert broker.requests == []
            server.release_clients("PLAINTEXT")
            assert await client.answer() == b"held"
            await client.close()
            await other.close()

    run(main())


def test_a_request_knows_the_listener_of_its_connection_and_limits_are_for_all_together(run):
    class NamingBroker:
        def handle_frame(self, frame, connection, send_response):
            name = connection.listener.encode()
            send_response([len(name).to_bytes(4, "big"), name])

    async def main():
        listeners = ("INSIDE", "OUTSIDE")
        async with serving(broker=NamingBroker(), listeners=listeners, max_connections_per_ip=2) as server:
            clients = [Client(*await asyncio.open_connection(HOST, endpoint.port)) for endpoint in server.endpoints]
            assert [await client.request(b"?") for client in clients] == [b"INSIDE", b"OUTSIDE"]
            refused = Client(*await asyncio.open_connection(HOST, server.endpoints[1].port))
            assert await refused.is_closed_by_broker()
            for client in (*clients, refused):
                await client.close()

    run(main())


def test_a_port_that_is_taken_leaves_no_other_port_bound(run):
    async def main():
        with socket.socket() as taken, socket.socket() as free:
            taken.bind((HOST, 0))
            taken.listen()
            free.bind((HOST, 0))
            port = free.getsockname()[1]
            free.close()
            with pytest.raises(OSError, match="choose another"):
                SocketServer([Endpoint("A", HOST, port), Endpoint("B", HOST, taken.getsockname()[1])])
            SocketServer([Endpoint("A", HOST, port)]).close()

    run(main())


class OneWordLogin:
    """Lets everybody in who says "me"."""

    is_token_authenticated = False
    session_lifetime_ms = None

    def __init__(self):
        self.principal = None

    def receive(self, frame):
        if frame == b"me":
            self.principal = KafkaPrincipal("User", "me")
        return [len(frame).to_bytes(4, "big"), frame]


def sockets_in_epolls():
    """Return by descriptor of each epoll of this process how many files it watches."""
    links = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return {
        int(link.name): Path("/proc/self/fdinfo", link.name).read_text().count("tfd:")
        for link in links
        if link.is_symlink() and link.readlink().name == "anon_inode:[eventpoll]"
    }


async def until_there_are(count, turns):
    """Wait until so many clients wait for their turns; the loop does not say when they do."""
    for _ in range(10_000):
        await asyncio.sleep(0)
        if sockets_in_epolls()[turns] == count:
            return
    raise AssertionError(sockets_in_epolls())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has epoll")
def test_clients_take_turns_until_they_have_logged_in(run):
    login = ListenerLogin(OneWordLogin, 1 << 10, 0)
    security = {"PLAINTEXT": ListenerSecurity(login=login)}

    async def main():
        before = sockets_in_epolls()
        async with serving(security=security) as server:
            (turns,) = sockets_in_epolls().keys() - before.keys()
            clients = [await Client.connect(server) for _ in range(4)]
            await until_there_are(4, turns)
            assert await clients[0].request(b"who") == b"who"
            assert sockets_in_epolls()[turns] == 4
            assert await clients[0].request(b"me") == b"me"
            assert sockets_in_epolls()[turns] == 3
            assert await clients[0].request(b"x" * 3_000) == b"x" * 3_000
            server.hold_clients("PLAINTEXT")
            assert sockets_in_epolls()[turns] == 0
            clients[1].send(b"me")
            server.release_clients("PLAINTEXT")
            assert await clients[1].answer() == b"me"
            for client in clients:
                await client.close()
            await until_there_are(0, turns)
        assert sockets_in_epolls().keys() == before.keys()

    run(main())
