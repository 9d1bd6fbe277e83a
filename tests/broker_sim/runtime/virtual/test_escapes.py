"""Calls that leave virtual time are refused at once, with the line of the call."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading

import pytest

from broker_sim.runtime.virtual import EscapeError, VirtualEventLoop
from broker_sim.runtime.virtual.escapes import ADVICE


@pytest.mark.parametrize("name", sorted(ADVICE))
def test_methods_that_leave_virtual_time_are_refused_with_advice(name):
    loop = VirtualEventLoop()
    with pytest.raises(EscapeError, match=rf"loop\.{name}: .*; "):
        getattr(loop, name)(1, 2)
    assert ADVICE[name] in getattr(type(loop), name).__doc__


async def subprocess_of_asyncio():
    await asyncio.create_subprocess_exec("true")


async def datagrams():
    await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol)


async def unix_socket():
    await asyncio.open_unix_connection("/tmp/nowhere")


async def connects_a_socket():
    socket.create_connection(("127.0.0.1", 1))


async def waits_for_an_event():
    threading.Event().wait()


async def waits_for_a_result():
    asyncio.run_coroutine_threadsafe(asyncio.sleep(1), asyncio.get_running_loop()).result()


async def joins_a_thread():
    thread = threading.Thread(target=print)
    thread.start()
    thread.join()


ESCAPES = {
    subprocess_of_asyncio: "loop.subprocess_exec: a subprocess runs in real time; ",
    datagrams: "carries TCP only",
    unix_socket: "no Unix sockets",
    connects_a_socket: "socket.connect: the real network is outside of virtual time",
    waits_for_an_event: "waiting for another thread blocks the whole loop",
    waits_for_a_result: "Future.result blocks the whole loop",
    joins_a_thread: "Thread.join blocks the whole loop",
}


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("order", ["fifo", "seeded"])
def test_escape_ends_the_run_at_once_and_names_the_line(run, escape, taken, order):
    """In a background task too, and where the program takes the error."""

    async def background():
        await asyncio.sleep(3)
        with contextlib.suppress(*[Exception] * taken):
            await escape()

    async def main():
        task = asyncio.create_task(background())
        await asyncio.sleep(3_600)
        await task

    with pytest.raises(EscapeError) as error:
        run(main, order=order)
    assert ESCAPES[escape] in str(error.value)
    assert f'File "{__file__}", line {escape.__code__.co_firstlineno}'[:-3] in str(error.value)
    assert str(error.value).endswith(f", in {escape.__name__}")
    assert run.loop.time() == 3


def test_other_sockets_stay_as_they_are(run):
    async def main():
        one, other = socket.socketpair()
        with one, other, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            one.sendall(b"x")
            datagrams.bind(("127.0.0.1", 0))
            return other.recv(1), datagrams.getsockname()[1] > 0

    assert run(main) == (b"x", True)
