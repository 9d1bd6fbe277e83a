"""A scheduler on an asyncio loop: real time, and work beside the loop, whose result comes back to it."""

import asyncio
import threading
import time
from functools import partial

import pytest
import uvloop

from broker_sim.runtime.process import Process
from broker_sim.runtime.scheduler import Scheduler, WorkQueue
from broker_sim.runtime.virtual.run import VirtualScheduler


def test_unexpected_error_goes_to_the_exception_handler_of_the_loop():
    async def main():
        contexts = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: contexts.append(context))
        process = Process("broker-1", Scheduler(loop))
        process.pause()
        process.deliver(lambda: 1 / 0)
        process.resume()
        return contexts

    (context,) = asyncio.run(main())
    assert context["message"] == "a callback of broker-1 failed"
    assert isinstance(context["exception"], ZeroDivisionError)
    assert context["exception"].__traceback__ is not None


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_no_delay_ends_before_its_full_length_has_passed(new_loop):
    async def main():
        loop = asyncio.get_running_loop()
        scheduler = Scheduler(loop)
        lateness = []
        for _ in range(100):
            over = loop.create_future()
            started = time.monotonic()
            scheduler.call_later(2, over.set_result, None)
            await over
            lateness.append(time.monotonic() - started - 0.002)
        return lateness

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert min(runner.run(main())) >= 0


def test_next_piece_begins_when_the_one_before_has_ended():
    running, results = [], []

    def work(number):
        running.append(number)
        assert len(running) == 1
        time.sleep(0)  # lets other threads run, if there are any
        running.remove(number)
        return number

    async def main():
        done = asyncio.get_running_loop().create_future()
        beside = WorkQueue(asyncio.get_running_loop())
        for number in range(50):
            beside.run(partial(work, number), results.append)
        beside.run(lambda: "last", done.set_result)
        assert await done == "last"

    asyncio.run(main())
    assert results == list(range(50))


def test_failure_of_a_piece_is_reported_and_the_next_one_begins():
    async def main():
        loop = asyncio.get_running_loop()
        errors, done = [], loop.create_future()
        loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
        beside = WorkQueue(loop)
        beside.run(lambda: 1 / 0, errors.append)
        beside.run(lambda: "next", done.set_result)
        assert await done == "next"
        assert [type(one) for one in errors] == [ZeroDivisionError]

    asyncio.run(main())


def test_short_work_does_not_wait_for_long_work():
    async def main():
        loop = asyncio.get_running_loop()
        scheduler, may_end, done = Scheduler(loop), threading.Event(), loop.create_future()
        all_done = loop.create_future()
        scheduler.run_beside(may_end.wait, id)
        scheduler.run_beside(may_end.wait, all_done.set_result)
        scheduler.run_beside(lambda: "short", done.set_result, is_short=True)
        async with asyncio.timeout(30):
            assert await done == "short"
        assert not all_done.done()
        may_end.set()
        await all_done

    asyncio.run(main())


def test_work_is_done_in_another_thread_and_its_result_is_for_the_loop():
    async def main():
        done = asyncio.get_running_loop().create_future()
        scheduler = Scheduler(asyncio.get_running_loop())
        scheduler.run_beside(
            threading.current_thread, lambda worker: done.set_result((worker, threading.current_thread()))
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


@pytest.mark.parametrize("kind", ["wait_beside", "run_beside"])
def test_end_of_the_loop_does_not_wait_for_work(gate, kind):
    begun = threading.Event()
    results = []

    def work():
        begun.set()
        gate.wait(30)
        return "late"

    async def main():
        scheduler = Scheduler(asyncio.get_running_loop())
        getattr(scheduler, kind)(work, results.append)
        done = asyncio.get_running_loop().create_future()
        scheduler.wait_beside(lambda: begun.wait(30), done.set_result)
        assert await done

    asyncio.run(main())
    assert not gate.is_set()
    assert results == []


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
