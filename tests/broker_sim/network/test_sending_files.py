"""Answers with parts of files over real sockets, on asyncio's loop and on uvloop's, plain and over TLS."""

import asyncio
import os
import socket
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from broker_sim.config import BrokerConfig, Endpoint
from broker_sim.network import Connection, SocketServer
from broker_sim.protocol.file_view import FileView, OpenFile
from broker_sim.runtime.process import Process
from broker_sim.runtime.scheduler import Scheduler
from broker_sim.runtime.system import open_descriptor

HOST = "127.0.0.1"
MB = 1 << 20
CONTENT = bytes(range(251)) * (40 * MB // 251 + 1)


def framed(data):
    return len(data).to_bytes(4, "big") + data


def port_of(server):
    (endpoint,) = server.endpoints
    return endpoint.port


class FileBroker:
    """Answers `POSITION SIZE` with a part of the file, by a view where the connection takes one."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(CONTENT)
        self.requests = []
        self.connections = []
        self.views = 0
        self.on_request = asyncio.Event()

    def handle_frame(self, frame, connection, send_response):
        self.requests.append(bytes(frame))
        self.connections.append(connection)
        self.on_request.set()
        position, size = map(int, bytes(frame).split())
        view = FileView(OpenFile(open_descriptor(str(self.path), os.O_RDONLY)), position, size)
        self.views += connection.sends_files
        send_response([size.to_bytes(4, "big"), view if connection.sends_files else view.read()])


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop])
def run(request):
    """Return a function that runs a coroutine to its end on the loop."""
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield lambda main: runner.run(asyncio.wait_for(main, 60))


@pytest.fixture
def serving(tmp_path):
    """Return a context manager that serves a file of 40 MB."""

    @asynccontextmanager
    async def serve(**configs):
        broker = FileBroker(tmp_path / "file")
        server = SocketServer([Endpoint("PLAINTEXT", HOST, 0)])
        try:
            process = Process("broker-1", Scheduler(asyncio.get_running_loop()))
            await server.start(process, broker, BrokerConfig(**configs))
            broker.server, broker.process = server, process
            reader, writer = await asyncio.open_connection(HOST, port_of(server))
            yield broker, reader, writer
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        finally:
            server.close()

    return serve


async def answer(reader):
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


def part(position, size):
    return CONTENT[position : position + size]


def open_descriptors():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def until(condition):
    """Let the loop go on until the condition holds."""
    while not condition():  # noqa: ASYNC110 - it is not only the broker that the condition is about
        await asyncio.sleep(0)


async def many_turns():
    """Let the loop go on for far more turns than all bytes would need."""
    for _ in range(500):
        await asyncio.sleep(0)


@pytest.mark.parametrize("sizes", [(1, 2, 3), (70_000, 5, 3 * MB), (20 * MB, 100_000, 20 * MB)])
def test_answers_come_whole_and_in_order(run, serving, sizes):
    async def main():
        async with serving() as (broker, reader, writer):
            for number, size in enumerate(sizes):
                writer.write(framed(b"%d %d" % (number, size)))
            for number, size in enumerate(sizes):
                assert await answer(reader) == part(number, size)
            assert broker.views == len(sizes)

    run(main())


def test_next_request_waits_until_the_file_is_sent(run, serving):
    async def main():
        async with serving() as (broker, reader, writer):
            writer.transport.pause_reading()
            writer.write(framed(b"0 %d" % (40 * MB)) + framed(b"7 9"))
            await until(lambda: broker.requests)
            await many_turns()
            assert len(broker.requests) == 1
            writer.transport.resume_reading()
            assert await answer(reader) == part(0, 40 * MB)
            assert await answer(reader) == part(7, 9)

    run(main())


@pytest.mark.parametrize("how", ["close", "reset"])
def test_client_that_goes_away_in_the_middle_leaves_nothing_open(run, serving, caplog, how):
    async def main():
        async with serving() as (broker, _, writer):
            writer.transport.pause_reading()
            writer.write(framed(b"0 %d" % (40 * MB)))
            await until(lambda: broker.requests)
            open_files = open_descriptors()
            if how == "reset":
                linger = (1).to_bytes(4, "little") + bytes(4)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            await until(lambda: open_descriptors() == open_files - 4)
            _, another = await asyncio.open_connection(HOST, port_of(broker.server))
            another.close()
            await another.wait_closed()

    run(main())
    assert caplog.text == ""


def test_client_that_only_sends_no_more_gets_its_answer(run, serving):
    async def main():
        async with serving() as (broker, reader, writer):
            writer.transport.pause_reading()
            writer.write(framed(b"0 %d" % (40 * MB)))
            await until(lambda: broker.requests)
            writer.write_eof()
            writer.transport.resume_reading()
            assert await answer(reader) == part(0, 40 * MB)
            assert await reader.read() == b""

    run(main())


def test_file_that_is_cut_under_way_ends_the_connection_with_a_reason(run, serving, caplog):
    async def main():
        async with serving() as (broker, reader, writer):
            writer.transport.pause_reading()
            writer.write(framed(b"0 %d" % (40 * MB)))
            await until(lambda: broker.requests)
            os.truncate(broker.path, 9)
            writer.transport.resume_reading()
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await answer(reader)

    run(main())
    assert "connection_closed" in caplog.text
    assert "before what was promised to the client" in caplog.text


def test_broker_that_closes_the_connection_sends_the_answer_first(run, serving):
    async def main():
        async with serving() as (broker, reader, writer):
            writer.transport.pause_reading()
            writer.write(framed(b"0 %d" % (40 * MB)))
            await until(lambda: broker.requests)
            broker.connections[0].close()
            writer.transport.resume_reading()
            assert await answer(reader) == part(0, 40 * MB)
            assert await reader.read() == b""

    run(main())


def test_broker_that_dies_breaks_the_answer_off(run, serving):
    async def main():
        async with serving() as (broker, reader, writer):
            writer.transport.pause_reading()
            writer.write(framed(b"0 %d" % (40 * MB)))
            await until(lambda: broker.requests)
            broker.connections[0].abort()
            writer.transport.resume_reading()
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await answer(reader)

    run(main())


def test_paused_broker_sends_nothing_until_it_is_resumed(run, serving):
    async def main():
        async with serving() as (broker, reader, writer):
            writer.transport.pause_reading()
            writer.write(framed(b"0 %d" % (40 * MB)))
            await until(lambda: broker.requests)
            broker.process.pause()
            writer.transport.resume_reading()
            whole = asyncio.ensure_future(answer(reader))
            await many_turns()
            assert not whole.done()
            broker.process.resume()
            assert await whole == part(0, 40 * MB)

    run(main())


def test_cut_network_stops_a_response_which_continues_later(run, serving):
    async def main():
        async with serving() as (broker, reader, writer):
            writer.transport.pause_reading()
            writer.write(framed(b"0 %d" % (40 * MB)))
            await until(lambda: broker.requests)
            broker.server.hold_clients("PLAINTEXT")
            writer.transport.resume_reading()
            whole = asyncio.ensure_future(answer(reader))
            await many_turns()
            assert not whole.done()
            broker.server.release_clients("PLAINTEXT")
            assert await whole == part(0, 40 * MB)
            writer.write(framed(b"3 8"))
            assert await answer(reader) == part(3, 8)

    run(main())


def test_connection_that_sends_is_not_idle(run, serving):
    async def main():
        async with serving() as (broker, reader, writer):
            writer.transport.pause_reading()
            writer.write(framed(b"0 %d" % (40 * MB)))
            await until(lambda: broker.requests)
            (connection,) = broker.connections
            last_use = connection.last_use
            writer.transport.resume_reading()
            await answer(reader)
            assert connection.last_use > last_use

    run(main())


def tls(purpose):
    """A context that needs no certificate."""
    context = ssl.SSLContext(purpose)
    if purpose is ssl.PROTOCOL_TLS_CLIENT:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    return context


def test_over_tls_the_bytes_are_read(run, tmp_path):
    async def main():
        loop = asyncio.get_running_loop()
        broker = FileBroker(tmp_path / "file")
        process = Process("broker-1", Scheduler(loop))
        connections = set()
        server = await loop.create_server(
            lambda: Connection(process, broker, MB, connections.add, connections.discard),
            HOST,
            0,
            ssl=tls(ssl.PROTOCOL_TLS_SERVER),
        )
        address = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(*address, ssl=tls(ssl.PROTOCOL_TLS_CLIENT))
        writer.write(framed(b"3 %d" % (3 * MB)))
        assert await answer(reader) == part(3, 3 * MB)
        assert broker.views == 0
        writer.close()
        await writer.wait_closed()
        await until(lambda: not connections)
        server.close()
        await server.wait_closed()

    run(main())
