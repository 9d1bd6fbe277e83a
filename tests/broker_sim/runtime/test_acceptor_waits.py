"""The waits of an acceptor, on a loop whose time jumps to the next timer when no socket has anything."""

import asyncio
import errno
import os
import selectors
import socket
import ssl
from contextlib import closing

import pytest

from broker_sim.runtime.acceptor import accept_connections
from broker_sim.runtime.read_turns import ReadTurns

HOST = "127.0.0.1"
SILENT_S = 60
RETRY_DELAY_S = 0.2
CLOSE_S = 0.001


class JumpingSelector(selectors.DefaultSelector):
    """Sockets are real, the time is not."""

    now_s = 0.0

    def select(self, timeout=None):
        events = super().select(0)
        if not events and timeout:
            self.now_s += timeout
        return events


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.jumping = JumpingSelector()
        super().__init__(self.jumping)

    def time(self):
        return self.jumping.now_s


class FullListening(socket.socket):
    """A listening socket that finds no file left until `has_room`."""

    has_room = False

    def __init__(self, loop):
        super().__init__(fileno=socket.create_server((HOST, 0)).detach())
        self.loop = loop
        self.tried_s = []

    def accept(self):
        self.tried_s.append(self.loop.time())
        if not self.has_room:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


@pytest.fixture
def run():
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        yield runner.run


def test_silent_tls_client_is_disconnected_after_a_minute(run):
    async def check():
        loop = asyncio.get_running_loop()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with (
            socket.create_server((HOST, 0)) as listening,
            socket.create_connection(listening.getsockname()) as client,
            closing(ReadTurns(loop)) as turns,
            closing(await accept_connections(loop, listening, asyncio.Protocol, 8, tls, turns)),
        ):
            client.setblocking(False)
            await asyncio.sleep(SILENT_S - CLOSE_S)
            with pytest.raises(BlockingIOError):
                client.recv(1)
            await asyncio.sleep(2 * CLOSE_S)
            assert client.recv(1) == b""

    run(check())


def test_connections_that_found_no_file_are_accepted_a_fifth_of_a_second_later(run):
    async def check():
        loop = asyncio.get_running_loop()
        with (
            FullListening(loop) as listening,
            socket.create_connection(listening.getsockname()),
            closing(await accept_connections(loop, listening, asyncio.Protocol, 8)),
        ):
            await asyncio.sleep(3.5 * RETRY_DELAY_S)
            assert listening.tried_s == pytest.approx([0, RETRY_DELAY_S, 2 * RETRY_DELAY_S, 3 * RETRY_DELAY_S])
            listening.has_room = True
            await asyncio.sleep(RETRY_DELAY_S)
            assert listening.tried_s[4] == pytest.approx(4 * RETRY_DELAY_S)

    run(check())
