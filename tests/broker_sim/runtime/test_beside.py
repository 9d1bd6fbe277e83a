"""Work beside a loop: one piece at a time or in threads of its own, its result on the loop."""

import asyncio
import threading

import pytest

from broker_sim.runtime.beside import BesideLoop
from broker_sim.runtime.process import Process
from broker_sim.runtime.scheduler import LoopScheduler
from broker_sim.runtime.virtual.scheduler import VirtualScheduler


class ThreadsOfTheTest:
    """Stands for a loop whose threads have begun the work and end it when the test says so."""

    def __init__(self, loop):
        self.loop = loop
        self.begun = []

    def run_in_executor(self, _, work):
        self.begun.append((work, self.loop.create_future()))
        return self.begun[-1][1]

    def end(self):
        work, future = self.begun.pop(0)
        future.set_result(work())


def test_next_piece_begins_when_the_one_before_has_ended():
    async def main():
        threads = ThreadsOfTheTest(asyncio.get_running_loop())
        beside = BesideLoop(threads)
        results = []
        for number in range(3):
            beside.run(lambda number=number: number, results.append)
        for number in range(3):
            assert len(threads.begun) == 1
            assert results == list(range(number))
            threads.end()
            await asyncio.sleep(0)
        assert results == [0, 1, 2]
        beside.run(lambda: "later", results.append)
        assert len(threads.begun) == 1

    asyncio.run(main())


def test_work_is_done_in_another_thread_and_its_result_is_for_the_loop():
    async def main():
        done = asyncio.get_running_loop().create_future()
        scheduler = LoopScheduler(asyncio.get_running_loop())
        scheduler.run_beside(
            threading.current_thread,
            lambda worker: done.set_result((worker, threading.current_thread())),
        )
        worker, thread_of_result = await done
        assert worker is not threading.current_thread()
        assert thread_of_result is threading.current_thread()

    asyncio.run(main())


@pytest.fixture
def gate():
    """What work waits for, at the longest until the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_work_that_waits_holds_up_neither_other_work_nor_the_end_of_the_loop(gate):
    results = []

    def wait():
        gate.wait(30)
        results.append("late")

    async def main():
        done = asyncio.get_running_loop().create_future()
        scheduler = LoopScheduler(asyncio.get_running_loop())
        scheduler.wait_beside(wait, results.append)
        scheduler.wait_beside(lambda: "other", done.set_result)
        results.append(await done)

    asyncio.run(main())
    assert results == ["other"]


@pytest.mark.parametrize("is_killed", [False, True])
def test_process_gets_the_result_when_it_runs_unless_it_has_died(is_killed):
    process = Process("broker-1", VirtualScheduler())
    calls = []
    process.pause()
    process.actions.add(lambda: calls.append("then"))
    process.run_beside(lambda: "result", calls.append)
    assert calls == []
    if is_killed:
        process.kill()
    process.resume()
    assert calls == ([] if is_killed else ["result", "then"])
