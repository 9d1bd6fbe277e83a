"""Streams and TLS on the virtual network, and on real sockets: they do the same."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager, suppress

import pytest

from broker_sim.runtime.virtual import VirtualEventLoop

BIG_BYTES = 16 * 1024 * 1024
"""More than the buffers of any kernel."""


@asynccontextmanager
async def one_client(handle, **options):
    """Serve one client with streams; the address, and at the end the server's side is closed too."""
    closed = asyncio.get_running_loop().create_future()

    async def serve(reader, writer):
        await handle(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        closed.set_result(None)

    async with await asyncio.start_server(serve, "127.0.0.1", 0, **options) as server:
        yield server.sockets[0].getsockname()
        await closed


def test_streams_read_lines_and_tell_an_early_end(run_either):
    async def main():
        async def echo(reader, writer):
            writer.write((await reader.readline()).upper())
            await writer.drain()

        async with one_client(echo) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"hello\n")
            line = await reader.readline()
            with pytest.raises(asyncio.IncompleteReadError):
                await reader.readexactly(1)
            writer.close()
            await writer.wait_closed()
        return line

    assert run_either(main) == b"HELLO\n"


def test_drain_waits_for_the_reader(run_either):
    async def main():
        go_on = asyncio.Event()

        async def slow(reader, writer):
            await go_on.wait()
            writer.write(b"%d" % len(await reader.readexactly(BIG_BYTES)))

        async with one_client(slow) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(bytes(BIG_BYTES))
            drained = asyncio.create_task(writer.drain())
            for _ in range(5):
                await asyncio.sleep(0)
            waited = not drained.done()
            go_on.set()
            await drained
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
        return waited, answer

    assert run_either(main) == (True, b"%d" % BIG_BYTES)


def test_end_comes_after_all_that_was_written(run_either):
    async def main():
        received = []

        async def read_all(reader, writer):
            received.append(len(await reader.read()))

        async with one_client(read_all) as address:
            _, writer = await asyncio.open_connection(*address)
            writer.write(bytes(BIG_BYTES))
            assert writer.transport.get_write_buffer_size() > 0
            writer.write_eof()
            while not received:  # noqa: ASYNC110 - a real reader takes its time
                await asyncio.sleep(0)
            writer.close()
            await writer.wait_closed()
        return received

    assert run_either(main) == [BIG_BYTES]


def anonymous_tls(purpose) -> ssl.SSLContext:
    """A context that needs no certificate."""
    context = ssl.SSLContext(purpose)
    if purpose is ssl.PROTOCOL_TLS_CLIENT:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    return context


def test_tls_works_over_the_connection(run_either):
    async def main():
        async def echo(reader, writer):
            writer.write((await reader.readline()).upper())
            await writer.drain()

        async with one_client(echo, ssl=anonymous_tls(ssl.PROTOCOL_TLS_SERVER)) as address:
            reader, writer = await asyncio.open_connection(*address, ssl=anonymous_tls(ssl.PROTOCOL_TLS_CLIENT))
            writer.write(b"secret\n")
            line = await reader.readline()
            cipher = writer.get_extra_info("cipher")[0]
            writer.close()
            await writer.wait_closed()
        return line, cipher

    assert run_either(main) == (b"SECRET\n", "AECDH-AES256-SHA")


def test_plain_connection_can_turn_to_tls(run_either):
    async def main():
        async def serve(reader, writer):
            assert await reader.readline() == b"STARTTLS\n"
            writer.write(b"go\n")
            await writer.start_tls(anonymous_tls(ssl.PROTOCOL_TLS_SERVER))
            writer.write((await reader.readline()).upper())
            await writer.drain()

        async with one_client(serve) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"STARTTLS\n")
            assert await reader.readline() == b"go\n"
            await writer.start_tls(anonymous_tls(ssl.PROTOCOL_TLS_CLIENT))
            writer.write(b"secret\n")
            line = await reader.readline()
            writer.close()
            await writer.wait_closed()
        return line

    assert run_either(main) == b"SECRET\n"


def test_encrypted_bytes_leave_the_trace_the_same():
    digests = set()
    for _ in range(3):
        loop = VirtualEventLoop()

        async def main():
            async def serve(reader, writer):
                writer.write(await reader.readline())
                writer.close()

            server_tls = anonymous_tls(ssl.PROTOCOL_TLS_SERVER)
            async with await asyncio.start_server(serve, "127.0.0.1", 7, ssl=server_tls):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", 7, ssl=anonymous_tls(ssl.PROTOCOL_TLS_CLIENT)
                )
                writer.write(b"line\n")
                await reader.read()
                writer.close()

        with asyncio.Runner(loop_factory=lambda loop=loop: loop) as runner:
            runner.run(main())
        digests.add(loop.trace.digest())
    assert len(digests) == 1
