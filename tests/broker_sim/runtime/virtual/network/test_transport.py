"""Connections do what those of real sockets do: most claims are checked on both kinds of loop."""

from __future__ import annotations

import asyncio
import errno

import pytest

BIG_BYTES = 16 * 1024 * 1024
"""More than the buffers of any kernel."""
PAUSES_AT_ONCE = "is_reading" in vars(asyncio.selector_events._SelectorTransport)
"""Whether a transport can be paused in `connection_made`: asyncio before Python 3.11.4 reads on there."""


class Recorder(asyncio.Protocol):
    """Writes down what it is told; `stays_open` is what it answers to the other side's end."""

    def __init__(self, *, stays_open: bool = False, pauses: bool = False) -> None:
        loop = asyncio.get_running_loop()
        self.events: list[str] = []
        self.data = bytearray()
        self.made, self.ended, self.lost = (loop.create_future() for _ in range(3))
        self.got_data = asyncio.Event()
        self.write_resumed = asyncio.Event()
        self._stays_open = stays_open
        self._pauses = pauses

    def connection_made(self, transport):
        self.transport = transport
        if self._pauses and PAUSES_AT_ONCE:
            transport.pause_reading()
        elif self._pauses:
            asyncio.get_running_loop().call_soon(transport.pause_reading)
        self.events.append("made")
        self.made.set_result(None)

    def data_received(self, data):
        self.data += data
        self.got_data.set()

    def eof_received(self):
        self.events.append("end")
        self.ended.set_result(None)
        return self._stays_open

    def connection_lost(self, exc):
        self.events.append("lost" if exc is None else f"lost {type(exc).__name__}")
        self.lost.set_result(None)

    def pause_writing(self):
        self.events.append("pause")

    def resume_writing(self):
        self.events.append("resume")
        self.write_resumed.set()

    async def receive(self, size: int) -> bytearray:
        while len(self.data) < size:
            await self.got_data.wait()
            self.got_data.clear()
        return self.data


class Pair:
    """A connected client and server."""

    def __init__(self, make_server, make_client) -> None:
        self._make_server, self._make_client = make_server, make_client

    async def __aenter__(self):
        loop = asyncio.get_running_loop()
        made = []
        self._listening = await loop.create_server(lambda: made.append(self._make_server()) or made[-1], "127.0.0.1", 0)
        address = self._listening.sockets[0].getsockname()
        _, client = await loop.create_connection(self._make_client, *address)
        while not made:  # noqa: ASYNC110 - a real server accepts in its own time
            await asyncio.sleep(0)
        await made[0].made
        self._ends = (made[0], client)
        return self._ends

    async def __aexit__(self, *_):
        self._listening.close()
        for end in self._ends:
            if not end.lost.done():
                end.transport.abort()
                await end.lost


def recorders(server=None, client=None) -> Pair:
    return Pair(lambda: Recorder(**server or {}), lambda: Recorder(**client or {}))


async def a_few_turns():  # on loopback what was written arrives in that time
    for _ in range(5):
        await asyncio.sleep(0)


def test_bytes_arrive_in_the_order_in_which_they_were_written(run_either):
    async def main():
        async with recorders() as (server, client):
            for number in range(200):
                client.transport.write(b"%04d" % number)
            client.transport.writelines([b"a", bytearray(b"b"), memoryview(b"c")])
            return await server.receive(803)

    assert run_either(main) == b"".join(b"%04d" % n for n in range(200)) + b"abc"


def test_written_buffer_may_change_at_once(run_either):
    async def main():
        async with recorders() as (server, client):
            buffer = bytearray(b"before")
            client.transport.write(buffer)
            buffer[:] = b"after!"
            return await server.receive(6)

    assert run_either(main) == b"before"


def test_nobody_listening_refuses(run_either):
    async def main():
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        address = listening.sockets[0].getsockname()
        listening.close()
        with pytest.raises(ConnectionRefusedError) as refused:
            await loop.create_connection(asyncio.Protocol, *address)
        return refused.value.errno, str(refused.value).split("(")[0]

    assert run_either(main) == (errno.ECONNREFUSED, "[Errno 111] Connect call failed ")


def test_port_in_use_cannot_be_taken_again(run_either):
    async def main():
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        address = listening.sockets[0].getsockname()
        with pytest.raises(OSError, match="address already in use") as in_use:
            await loop.create_server(asyncio.Protocol, *address)
        listening.close()
        again = await loop.create_server(asyncio.Protocol, *address)
        again.close()
        return in_use.value.errno

    assert run_either(main) == errno.EADDRINUSE


def test_close_sends_the_end_after_the_data(run_either):
    async def main():
        async with recorders() as (server, client):
            client.transport.write(b"last")
            client.transport.close()
            assert client.transport.is_closing()
            client.transport.write(b"too late")
            await asyncio.gather(server.lost, client.lost)
            return server.events, server.data, client.events

    assert run_either(main) == (["made", "end", "lost"], b"last", ["made", "lost"])


def test_half_close_leaves_the_other_direction_open(run_either):
    async def main():
        async with recorders(server={"stays_open": True}) as (server, client):
            client.transport.write(b"question")
            client.transport.write_eof()
            with pytest.raises(RuntimeError, match="after write_eof"):
                client.transport.write(b"more")
            await server.ended
            server.transport.write(b"answer")
            await client.receive(6)
            server.transport.close()
            await asyncio.gather(server.lost, client.lost)
            return server.events, server.data, client.events, client.data

    events = ["made", "end", "lost"]
    assert run_either(main) == (events, b"question", events, b"answer")


def test_abort_is_an_end_for_the_other_side(run_either):
    async def main():
        async with recorders() as (server, client):
            server.transport.abort()
            await asyncio.gather(server.lost, client.lost)
            return server.events, client.events

    assert run_either(main) == (["made", "lost"], ["made", "end", "lost"])


def test_close_with_something_unread_resets(run_either):
    async def main():
        async with recorders(server={"pauses": True}) as (server, client):
            client.transport.write(b"never read")
            await a_few_turns()
            server.transport.close()
            await asyncio.gather(server.lost, client.lost)
            return server.events, client.events

    assert run_either(main) == (["made", "lost"], ["made", "lost ConnectionResetError"])


def test_data_for_a_closed_socket_resets_the_writer(run_either):
    async def main():
        async with recorders(client={"stays_open": True}) as (server, client):
            server.transport.close()
            await asyncio.gather(server.lost, client.ended)
            while not client.transport.is_closing():
                client.transport.write(b"anybody there?")
                await asyncio.sleep(0)
            await client.lost
            return client.events

    assert run_either(main) == ["made", "end", "lost BrokenPipeError"]


def test_reset_is_noticed_by_a_reader_after_the_data(run_either):
    async def main():
        async with recorders(server={"pauses": True}, client={"pauses": True}) as (server, client):
            client.transport.write(b"never read")
            server.transport.write(b"answer")
            await a_few_turns()
            server.transport.close()
            await server.lost
            client.transport.resume_reading()
            await client.lost
            return client.events

    assert run_either(main) == ["made", "lost ConnectionResetError"]


def test_paused_reader_gets_the_data_and_the_end_when_it_resumes(run_either):
    async def main():
        async with recorders(server={"pauses": True}) as (server, client):
            client.transport.write(b"one")
            client.transport.write(b"two")
            client.transport.close()
            await client.lost
            await a_few_turns()
            assert (server.data, server.events) == (b"", ["made"])
            server.transport.resume_reading()
            await server.lost
            return server.data, server.events

    assert run_either(main) == (b"onetwo", ["made", "end", "lost"])


def test_slow_reader_pauses_the_writer_until_it_reads(run_either):
    async def main():
        async with recorders(server={"pauses": True}) as (server, client):
            client.transport.write(bytes(BIG_BYTES))
            assert client.events == ["made", "pause"]
            assert client.transport.get_write_buffer_size() > 64 * 1024
            server.transport.resume_reading()
            await client.write_resumed.wait()
            assert client.transport.get_write_buffer_size() <= 16 * 1024
            await server.receive(BIG_BYTES)
            client.transport.close()
            await server.lost
            return client.events, len(server.data)

    assert run_either(main) == (["made", "pause", "resume", "lost"], BIG_BYTES)


def test_close_waits_until_all_is_written_but_abort_does_not(run_either):
    async def main():
        async with recorders(server={"pauses": True}) as (server, client):
            client.transport.write(bytes(BIG_BYTES))
            client.transport.close()
            await a_few_turns()
            assert not client.lost.done()
            server.transport.resume_reading()
            await server.lost
            assert len(server.data) == BIG_BYTES
        async with recorders(server={"pauses": True}) as (server, client):
            client.transport.write(bytes(BIG_BYTES))
            client.transport.abort()
            await client.lost
            assert client.transport.get_write_buffer_size() == 0
            server.transport.resume_reading()
            await server.lost
            return 0 < len(server.data) < BIG_BYTES, client.events

    assert run_either(main) == (True, ["made", "pause", "lost"])


def test_write_limits_decide_when_the_writer_pauses(run_either):
    async def main():
        async with recorders(server={"pauses": True}) as (_, client):
            client.transport.set_write_buffer_limits(high=2 * BIG_BYTES, low=5)
            assert client.transport.get_write_buffer_limits() == (5, 2 * BIG_BYTES)
            client.transport.write(bytes(BIG_BYTES))
            assert client.events == ["made"]
            client.transport.set_write_buffer_limits(high=1000)
            assert client.events == ["made", "pause"]
            client.transport.abort()
            await client.lost

    run_either(main)


class BufferedRecorder(Recorder, asyncio.BufferedProtocol):
    """Reads seven bytes at a time; pauses after each time if told so."""

    def __init__(self, *, pauses_each_time: bool = False) -> None:
        super().__init__()
        self.buffer = bytearray(7)
        self.sizes: list[int] = []
        self.pauses_each_time = pauses_each_time

    def get_buffer(self, sizehint):
        assert sizehint == -1
        return self.buffer

    def buffer_updated(self, nbytes):
        self.sizes.append(nbytes)
        Recorder.data_received(self, bytes(self.buffer[:nbytes]))
        if self.pauses_each_time:
            self.transport.pause_reading()


def test_buffered_protocol_is_filled_again_and_again(run_either):
    async def main():
        async with Pair(BufferedRecorder, Recorder) as (server, client):
            client.transport.write(b"0123456789abcdef")
            data = await server.receive(16)
            return data, server.sizes

    assert run_either(main) == (b"0123456789abcdef", [7, 7, 2])


def test_buffered_protocol_that_pauses_gets_the_rest_when_it_resumes(run_either):
    async def main():
        async with Pair(lambda: BufferedRecorder(pauses_each_time=True), Recorder) as (server, client):
            client.transport.write(b"0123456789abcdef")
            await server.receive(7)
            await a_few_turns()
            assert server.data == b"0123456"
            server.pauses_each_time = False
            server.transport.resume_reading()
            return await server.receive(16)

    assert run_either(main) == b"0123456789abcdef"


def test_empty_buffer_ends_the_connection(run_either):
    class Empty(BufferedRecorder):
        def get_buffer(self, sizehint):
            return bytearray()

    text = "get_buffer() returned an empty buffer"
    assert failure_of(run_either, Empty) == (text, ["made", "lost ConnectionResetError"])


def test_protocol_that_raises_loses_its_connection(run_either):
    class Broken(Recorder):
        def data_received(self, data):
            raise ValueError("no")

    assert failure_of(run_either, Broken) == ("no", ["made", "end", "lost"])


def failure_of(run_either, make_server) -> tuple[str, list[str]]:
    """Return what the exception handler and the client are told when it writes to such a server."""

    async def main():
        failures = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        async with Pair(make_server, Recorder) as (server, client):
            client.transport.write(b"x")
            await asyncio.gather(server.lost, client.lost)
            assert server.events == ["made", f"lost {type(failures[0]['exception']).__name__}"]
            assert failures[0]["transport"] is server.transport
        return str(failures[0]["exception"]), client.events

    return run_either(main)


def test_addresses_of_both_ends_match(run_either):
    async def main():
        async with recorders() as (server, client):
            extra = [end.transport.get_extra_info for end in (server, client)]
            ends = [[get("sockname"), get("peername")] for get in extra]
            sock = client.transport.get_extra_info("socket")
            assert [sock.getsockname(), sock.getpeername()] == ends[1]
            assert client.transport.get_extra_info("sslcontext", "none") == "none"
            return ends[0] == ends[1][::-1], ends[0][0][0]

    assert run_either(main) == (True, "127.0.0.1")


def test_only_bytes_can_be_written(run_either):
    async def main():
        async with recorders() as (_, client):
            with pytest.raises(TypeError, match="object, not 'str'"):
                client.transport.write("text")

    run_either(main)
