"""Many connections at the same time on a real socket: a few are accepted in each turn of the loop."""

import asyncio
import socket
import ssl
import time
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import pytest
import uvloop

from broker_sim.runtime.acceptor import ACCEPTS_AT_ONCE, accept_connections
from broker_sim.runtime.handshakes import HANDSHAKE_WAIT_S, HANDSHAKES_AT_ONCE
from broker_sim.runtime.read_turns import ReadTurns
from broker_sim.runtime.sockets import bind
from broker_sim.security import Certificates
from broker_sim.security.ssl_stores import load_key_pair

START_OF_TLS = b"\x16"
HOST = "127.0.0.1"
CLIENTS = 5 * max(ACCEPTS_AT_ONCE, HANDSHAKES_AT_ONCE)
TURNS = CLIENTS + 5
"""As many as it takes to accept all, and to begin what is begun then."""
LIMIT_S = 10
"""A handshake that nobody begins is given up after a minute only."""


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop])
def run(request):
    """Return a function that runs a coroutine to its end on the loop."""
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


@pytest.fixture(scope="module")
def certificates():
    return Certificates()


@pytest.fixture
def tls(certificates):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_key_pair(context, certificates.for_hosts([HOST]), None, "server")
    return context


@pytest.fixture
def trusting(certificates):
    return ssl.create_default_context(cadata=certificates.authority)


async def listen(stack, tls=None, *, takes_turns=False):
    """Accept connections; return the port, the protocols that were made, and who accepts."""
    made = []

    def make():
        made.append(asyncio.Protocol())
        return made[-1]

    listening = bind(asyncio.get_running_loop(), HOST, 0)
    port = listening.getsockname()[1]
    loop = asyncio.get_running_loop()
    turns = stack.enter_context(closing(ReadTurns(loop))) if takes_turns else None
    accepting = await accept_connections(loop, listening, make, CLIENTS + 1, tls, turns)
    stack.enter_context(closing(accepting))
    return port, made, accepting


def connect_all(stack, port):
    """Connect without the loop, in which nothing happens meanwhile."""
    return [stack.enter_context(socket.create_connection((HOST, port))) for _ in range(CLIENTS)]


def test_few_connections_are_accepted_in_one_turn(run):
    async def main():
        with ExitStack() as stack:
            port, made, _ = await listen(stack)
            connect_all(stack, port)
            counts = [0]
            while counts[-1] < CLIENTS:
                await asyncio.sleep(0)
                counts.append(len(made))
            return max(after - before for before, after in pairwise(counts))

    assert run(main()) == ACCEPTS_AT_ONCE


def test_clients_that_connect_while_held_are_served_afterwards(run):
    async def main():
        with ExitStack() as stack:
            port, made, acceptor = await listen(stack)
            acceptor.hold()
            connect_all(stack, port)
            for _ in range(TURNS):
                await asyncio.sleep(0)
            assert not made
            acceptor.release()
            counts = [0]
            while counts[-1] < CLIENTS:
                await asyncio.sleep(0)
                counts.append(len(made))

    run(main())


async def shake_hands(port, trusting):
    _, writer = await asyncio.open_connection(HOST, port, ssl=trusting)
    writer.close()


@pytest.mark.parametrize("takes_turns", [True, False])
def test_handshakes_that_hang_hold_up_others_for_a_while_only(run, tls, trusting, takes_turns):
    async def main():
        with ExitStack() as stack:
            port, made, _ = await listen(stack, tls, takes_turns=takes_turns)
            for client in connect_all(stack, port):
                client.send(START_OF_TLS)
            start_s = time.perf_counter()
            for _ in range(TURNS):
                await asyncio.sleep(0)
            at_once = len(made)
            waits = (time.perf_counter() - start_s) // HANDSHAKE_WAIT_S
            async with asyncio.timeout(LIMIT_S):
                await shake_hands(port, trusting)
            return at_once, waits, len(made)

    at_once, waits, all_made = run(main())
    assert at_once <= HANDSHAKES_AT_ONCE + waits
    assert all_made == CLIENTS + 1


def test_one_handshake_begins_in_one_turn_when_several_end(run, tls):
    async def main():
        with ExitStack() as stack:
            port, made, _ = await listen(stack, tls)
            clients = connect_all(stack, port)
            for _ in range(TURNS):
                await asyncio.sleep(0)
            for client in clients[: len(made)]:
                client.close()
            counts = [len(made)]
            while counts[-1] < CLIENTS:
                await asyncio.sleep(0)
                counts.append(len(made))
            return max(after - before for before, after in pairwise(counts))

    # One more begins after a wait, whatever has begun in that turn.
    assert run(main()) <= 2


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no list of open files")
def test_socket_that_cannot_listen_leaves_no_file_open(run):
    def open_files():
        return sorted(Path("/proc/self/fd").iterdir())

    async def main():
        with socket.socket() as first, socket.socket() as second:
            for each in (first, second):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            first.bind((HOST, 0))
            second.bind(first.getsockname())
            first.listen()
            before = open_files()
            with pytest.raises(OSError, match="Address already in use"):
                await accept_connections(asyncio.get_running_loop(), second, asyncio.Protocol, backlog=1)
            return before, open_files()

    before, after = run(main())
    assert before == after


def test_silent_clients_delay_no_other_client(run, tls, trusting):
    async def main():
        with ExitStack() as stack:
            port, made, _ = await listen(stack, tls, takes_turns=True)
            connect_all(stack, port)
            await shake_hands(port, trusting)
            return len(made)

    assert run(main()) == 1


def test_handshake_begins_when_clients_are_no_longer_held(run, tls, trusting):
    async def main():
        with ExitStack() as stack:
            port, made, acceptor = await listen(stack, tls, takes_turns=True)
            silent = connect_all(stack, port)
            for _ in range(TURNS):
                await asyncio.sleep(0)
            acceptor.hold()
            for client in silent:
                client.send(START_OF_TLS)
            for _ in range(TURNS):
                await asyncio.sleep(0)
            assert not made
            acceptor.release()
            await shake_hands(port, trusting)
            return len(made)

    assert run(main()) == CLIENTS + 1


def test_silent_clients_are_closed_with_the_listener(run, tls):
    async def main():
        with ExitStack() as stack:
            port, _, acceptor = await listen(stack, tls, takes_turns=True)
            silent = connect_all(stack, port)
            for _ in range(TURNS):
                await asyncio.sleep(0)
            acceptor.close()
            return [client.recv(1) for client in silent]

    assert run(main()) == [b""] * CLIENTS


@pytest.mark.parametrize("is_secure", [True, False])
def test_connections_that_were_just_accepted_are_closed_with_the_listener(run, tls, is_secure):
    async def main():
        with ExitStack() as stack:
            port, _, acceptor = await listen(stack, tls if is_secure else None)
            clients = connect_all(stack, port)
            acceptor._accept()
            acceptor.close()
            for _ in range(TURNS):
                await asyncio.sleep(0)
            return [ended(client) for client in clients]

    assert run(main()) == [True] * CLIENTS


def ended(client):
    """Whether the other side has closed the connection."""
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:  # it was in the backlog
        return True
    except BlockingIOError:
        return False
