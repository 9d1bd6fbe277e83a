"""Handlers of signals that the program sends to itself."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from broker_sim.runtime.virtual import VirtualEventLoop


def test_program_gets_its_stop_signal_in_virtual_time(run):
    before = signal.getsignal(signal.SIGTERM)

    async def main():
        loop = asyncio.get_running_loop()
        calls, stop = [], asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, calls.append, "first")
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        loop.call_later(5, os.kill, os.getpid(), signal.SIGTERM)
        await stop.wait()
        loop.add_signal_handler(signal.SIGUSR1, calls.append, "again")
        signal.raise_signal(signal.SIGUSR1)
        await asyncio.sleep(0)
        assert loop.remove_signal_handler(signal.SIGTERM)
        assert not loop.remove_signal_handler(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is before
        return calls, loop.time()

    usual = signal.getsignal(signal.SIGUSR1)
    assert run(main) == (["again"], 5)
    assert signal.getsignal(signal.SIGUSR1) is usual  # the loop has closed


@pytest.mark.parametrize(
    ("number", "callback", "error"),
    [("SIGTERM", print, TypeError), (99_999, print, ValueError), (15, asyncio.sleep, TypeError)],
)
def test_bad_arguments_are_the_errors_of_asyncio(number, callback, error):
    with pytest.raises(error):
        VirtualEventLoop().add_signal_handler(number, callback)


def test_handlers_are_for_the_main_thread():
    errors = []

    def add():
        try:
            VirtualEventLoop().add_signal_handler(signal.SIGTERM, print)
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=add)
    thread.start()
    thread.join()
    assert errors == ["signals can be handled in the main thread only"]
