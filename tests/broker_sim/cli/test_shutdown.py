"""A command that serves ends at once, whatever its loop has still to do."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from broker_sim.cli.shutdown import Shutdown

TIMEOUT_S = 60


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_halts_before_the_next_callback_and_wakes_the_loop(number):
    async def run():
        shutdown = Shutdown(asyncio.get_running_loop())
        halted = []
        shutdown.halt = lambda: halted.append(number)
        before = signal.getsignal(number)
        with shutdown.on_signals():
            os.kill(os.getpid(), number)
            assert halted == [number]
            await asyncio.wait_for(shutdown.requested.wait(), 60)
        assert signal.getsignal(number) == before

    asyncio.run(run())


def test_work_is_cancelled_when_the_shutdown_comes_first():
    async def run():
        shutdown = Shutdown(asyncio.get_running_loop())
        ended = []

        async def work():
            shutdown.request()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("work")

        assert not await shutdown.run(work())
        assert ended == ["work"]

    asyncio.run(run())


def test_work_ends_with_who_waits_for_it():
    async def run():
        shutdown = Shutdown(asyncio.get_running_loop())
        began, ended = asyncio.Event(), []

        async def work():
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("work")

        waiting = asyncio.ensure_future(shutdown.run(work()))
        await began.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert ended == ["work"]
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


def test_work_that_is_done_and_its_error_are_passed_on():
    async def run():
        shutdown = Shutdown(asyncio.get_running_loop())
        assert await shutdown.run(asyncio.sleep(0))

        async def fail():
            raise OSError("no port")

        with pytest.raises(OSError, match="no port"):
            await shutdown.run(fail())

    asyncio.run(run())


def test_shutdown_after_the_loop_is_closed_does_nothing():
    loop = asyncio.new_event_loop()
    shutdown = Shutdown(loop)
    loop.close()
    shutdown.request()


STILL_RUNS = """
import os

async def test(chaos, tmp_path):
    (tmp_path / "running").touch()
    with open(os.environ["RUNNING"], "w") as running:
        running.write("x")
    while True:
        pass
"""


@pytest.mark.threads
@pytest.mark.parametrize("processes", [1, 2])
def test_chaos_ended_by_sigterm_leaves_no_files_and_no_processes(tmp_path, processes):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "endless.py").write_text(STILL_RUNS)
    os.mkfifo(tmp_path / "running")
    command = [sys.executable, "-m", "broker_sim", "chaos", "endless:test", "--jobs", str(processes)]
    environment = {**os.environ, "TMPDIR": str(temporary), "RUNNING": str(tmp_path / "running")}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    with (tmp_path / "running").open("r+b", buffering=0) as running:
        for _ in range(processes):
            running.read(1)
    process.terminate()
    _, stderr = process.communicate(timeout=TIMEOUT_S)  # the workers have ended too: they have the same stderr
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in stderr
    assert [*temporary.iterdir()] == []
