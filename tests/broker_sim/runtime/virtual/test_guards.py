"""Runs that would not end are ended, failures end runs, and garbage is collected at counted steps."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import weakref

import pytest

from broker_sim.runtime.virtual import (
    EscapeError,
    UnhandledError,
    VirtualDeadlockError,
    VirtualEventLoop,
    VirtualLivelockError,
    VirtualTimeLimitError,
)

# -- what ends a run ----------------------------------------------------------------------------


def test_deadlock_names_the_tasks_and_where_they_wait(run):
    async def waits_for_ever():
        await asyncio.Event().wait()

    async def main():
        task = asyncio.create_task(waits_for_ever(), name="the-waiter")
        await asyncio.sleep(3)
        await task

    with pytest.raises(VirtualDeadlockError) as deadlock:
        run(main, seed=42)
    text = str(deadlock.value)
    assert "at 3.0 s of virtual time (seed 42)" in text
    assert "the-waiter waits at test_guards.py:" in text
    assert "(waits_for_ever) > locks.py:" in text


def test_place_inside_of_asynchronous_generators_is_named(run):
    @contextlib.asynccontextmanager
    async def context():
        try:
            yield
        finally:
            await asyncio.Event().wait()

    async def numbers():
        yield 1
        async with context():
            pass

    async def main():
        async for _ in numbers():
            pass

    with pytest.raises(VirtualDeadlockError, match=r"\(main\) > \S+ \(numbers\) > .* \(context\) > \S+ \(wait\)"):
        run(main)


def test_hung_program_with_a_periodic_timer_is_stopped_by_the_limit(run):
    async def main():
        async def heartbeat():
            while True:  # noqa: ASYNC110 - a program that hangs
                await asyncio.sleep(3)

        beating = asyncio.create_task(heartbeat())
        await asyncio.Event().wait()
        await beating

    with pytest.raises(VirtualTimeLimitError, match=r"(?s)more than the allowed 60\.0 s.*heartbeat") as over:
        run(main, limit_s=60)
    assert "at 60.0 s" in str(over.value)


def test_limit_is_a_day_by_default(run):
    async def main():
        while True:  # noqa: ASYNC110 - a program that hangs
            await asyncio.sleep(600)

    with pytest.raises(VirtualTimeLimitError, match=r"86400\.0 s"):
        run(main)


def test_limit_holds_for_blocking_sleep_too():
    loop = VirtualEventLoop(limit_s=10)
    with pytest.raises(VirtualTimeLimitError):
        loop.sleep_blocking(11)
    loop.sleep_blocking(10)
    assert loop.time() == 10


@pytest.mark.parametrize("limit_s", [10, 1_000, None])
def test_run_that_ends_has_time_of_its_own(limit_s):
    loop = VirtualEventLoop(limit_s=limit_s)
    loop.sleep_blocking(5)
    loop.time_limit.limit_shutdown(20)
    loop.sleep_blocking(20)
    with pytest.raises(VirtualTimeLimitError, match=r"allowed 20 s pass at the end of the run, at 25"):
        loop.sleep_blocking(1)


def test_shortened_limit_is_over_sooner_until_it_is_lifted():
    loop = VirtualEventLoop(limit_s=100)
    loop.time_limit.shorten(20)
    with pytest.raises(VirtualTimeLimitError, match=r"allowed 20 s pass at the end"):
        loop.sleep_blocking(21)
    loop.time_limit.lift()
    loop.sleep_blocking(90)
    loop.time_limit.shorten(20)
    with pytest.raises(VirtualTimeLimitError, match=r"allowed 100\.0 s pass,"):
        loop.sleep_blocking(11)


def test_program_that_spins_without_time_passing_is_stopped(run):
    async def main():
        asyncio.get_running_loop().call_later(1, print)
        while True:  # noqa: ASYNC110 - a program that hangs
            await asyncio.sleep(0)

    with pytest.raises(VirtualLivelockError, match=r"(?s)the time does not move.*main"):
        run(main, max_steps_at_one_time=5_000, collect_every=1_000)


def test_many_steps_are_no_livelock_while_the_time_moves(run):
    async def main():
        for _ in range(20_000):
            await asyncio.sleep(0.001)

    run(main, max_steps_at_one_time=5_000, collect_every=1_000)


def test_error_of_an_unawaited_task_fails_the_run(run):
    async def fails():
        raise ValueError("lost error")

    async def main():
        asyncio.create_task(fails(), name="forgotten")  # noqa: RUF006 - that is the mistake
        await asyncio.sleep(3600)

    with pytest.raises(ValueError, match="lost error") as error:
        run(main, seed=9)
    # Before Python 3.12 the task is gone at once, since then the collector finds it at the end.
    assert error.value.__notes__[0].startswith("NumberedTask exception was never retrieved in task forgotten, at ")


def test_error_of_a_task_that_only_the_collector_finds_fails_the_run(run):
    async def fails():
        raise ValueError("lost error")

    async def main():
        cycle = [asyncio.create_task(fails())]
        cycle.append(cycle)
        await asyncio.sleep(1)

    with pytest.raises(ValueError, match="lost error"):
        run(main)


def test_error_of_a_callback_fails_the_run(run):
    async def main():
        asyncio.get_running_loop().call_later(5, lambda: 1 // 0)
        await asyncio.sleep(3600)

    with pytest.raises(ZeroDivisionError):
        run(main)
    assert run.loop.time() == 5


def test_failure_without_an_exception_fails_the_run(run):
    async def main():
        asyncio.get_running_loop().call_exception_handler({"message": "something is wrong"})
        await asyncio.sleep(1)

    with pytest.raises(UnhandledError, match="something is wrong"):
        run(main)


def test_program_with_an_exception_handler_takes_its_failures_itself(run):
    errors = []

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(type(context["exception"])))
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)
        return "went on"

    assert run(main) == "went on"
    assert errors == [ZeroDivisionError]


def test_thread_in_real_time_cannot_reach_into_the_loop(run):
    """One that was started before: those of the program take turns with the loop."""
    loops, errors = [], []
    begin, intruded = threading.Event(), threading.Event()

    def intrude():
        begin.wait()
        try:
            loops[0].call_soon_threadsafe(print)
        except EscapeError as error:
            errors.append(str(error))
        intruded.set()

    async def main():
        loops.append(asyncio.get_running_loop())
        begin.set()
        while not intruded.is_set():  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0)
        await asyncio.sleep(1)

    thread = threading.Thread(target=intrude, name="intruder")
    thread.start()
    with pytest.raises(EscapeError, match="intruder"):
        run(main)
    thread.join()
    assert "'intruder' runs in real time" in errors[0]


# -- garbage ------------------------------------------------------------------------------------


class Node:
    """Garbage that only the collector finds, and that tells when it is found."""

    def __init__(self, on_gone) -> None:
        self.itself = self
        weakref.finalize(self, on_gone)


@pytest.fixture
def _collector_on():
    """Another test of the process may have left it off."""
    was_on = gc.isenabled()
    gc.enable()
    yield
    if not was_on:
        gc.disable()


@pytest.mark.usefixtures("_collector_on")
@pytest.mark.parametrize("noise", [0, 5_000])
def test_garbage_is_collected_at_counted_steps_only(run, noise):
    """Weak references and `__del__` act on the program: aiokafka's connections close themselves so."""
    gone_at = []

    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        Node(lambda: gone_at.append(loop.steps))
        # As many objects as would make the collector run by itself, at a time of its own.
        ballast = [[number] for number in range(noise)]
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert len(ballast) == noise
        assert not gc.isenabled()

    run(main, collect_every=500)
    assert gone_at == [500]
    assert gc.isenabled()


@pytest.mark.usefixtures("_collector_on")
def test_collector_is_as_it_was_after_stepping():
    loop = VirtualEventLoop()
    states = []
    for _ in range(2):
        loop.call_soon(lambda: states.append(gc.isenabled()))
        loop.step()
        assert gc.isenabled()
    gc.disable()
    try:
        loop.call_soon(lambda: None)
        loop.step()
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert states == [False, False]
