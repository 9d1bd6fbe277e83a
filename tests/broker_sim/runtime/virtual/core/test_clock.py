"""The clock of a virtual loop; it moves also where a program waits without a delay until it has."""

from __future__ import annotations

import asyncio
import math
import threading
import time

import pytest

from broker_sim.runtime.virtual import LoopClock, VirtualLivelockError
from broker_sim.runtime.virtual.core.clock import MAX_TIMERS_WITHOUT_DELAY, delay_to_ns


@pytest.mark.parametrize(
    ("delay_s", "expected_ns"),
    [
        (-1, 0),
        (0, 0),
        (3.6e-16, 1_000),
        (1e-6, 1_000),
        (1.4e-6, 2_000),
        (0.1, 100_000_000),
        (4.1 - 4.0, 100_000_000),
        (1.1 + 2.2, 3_300_000_000),
        (30, 30_000_000_000),
        (math.inf, 10**18),
    ],
)
def test_delay_is_rounded_up_to_whole_microseconds_and_at_least_one(delay_s, expected_ns):
    assert delay_to_ns(delay_s) == expected_ns


def test_nan_delay_is_rejected():
    with pytest.raises(ValueError, match="NaN"):
        delay_to_ns(math.nan)


def test_clock_rounds_readings_down_and_deadlines_up():
    clock = LoopClock(wall_start_ms=1_000)
    assert (clock.now_ms(), clock.wall_clock_ms()) == (0, 1_000)
    clock.move_to_ns(5_000_000)
    assert (clock.now_ms(), clock.deadline_ms(10)) == (5, 15)
    clock.move_to_ns(5_000_001)
    assert (clock.now_ms(), clock.deadline_ms(10)) == (5, 16)
    assert clock.seconds_until(6) == 0.000999999
    assert clock.wall_clock_ms() == 1_005
    assert clock.wall_clock_ns() == 1_005_000_001


def test_time_never_goes_back():
    clock = LoopClock()
    clock.move_to_ns(1_000)
    with pytest.raises(AssertionError, match="never goes back"):
        clock.move_to_ns(999)


def test_nobody_waits_on_the_clock():
    assert LoopClock().wait_until(threading.Condition(), 10) is False


async def wait_until_after(deadline):
    """Wait as aiokafka does for its next auto-commit: without a delay once the deadline is now."""
    waiter = asyncio.get_running_loop().create_future()
    while time.monotonic() <= deadline:
        await asyncio.wait([waiter], timeout=max(0, deadline - time.monotonic()))


@pytest.mark.parametrize("order", ["fifo", "seeded"])
def test_wait_without_a_delay_for_a_deadline_to_be_over_ends(run, order):
    async def main():
        await asyncio.gather(*(wait_until_after(deadline) for deadline in (5, 5, 7)))
        return time.monotonic()

    assert run(main, order=order) == pytest.approx(7.000001, abs=1e-7)


def test_clock_of_milliseconds_moves_by_waits_without_a_delay(run):
    async def main():
        waiter = asyncio.get_running_loop().create_future()
        while int(time.monotonic() * 1_000) < 2:
            await asyncio.wait([waiter], timeout=0)
        return asyncio.get_running_loop().steps

    assert run(main) < 20_000  # once time has to move, each further wait moves it


def test_few_timers_without_a_delay_take_no_time(run):
    async def main(count=MAX_TIMERS_WITHOUT_DELAY):
        loop = asyncio.get_running_loop()
        ran_at = []
        for round_s in (0, 3):
            await asyncio.sleep(round_s)
            for _ in range(count):
                loop.call_later(0, lambda: ran_at.append(loop.time()))
        loop.call_later(0, lambda: ran_at.append(loop.time()))
        await asyncio.sleep(1)
        return ran_at

    assert run(main) == [0] * 10 + [3] * 10 + [3.000001]


async def spin_by_yielding():
    while True:  # noqa: ASYNC110 - a program that hangs
        await asyncio.sleep(0)


async def spin_by_waiting():
    waiter = asyncio.get_running_loop().create_future()
    while not waiter.done():
        await asyncio.wait([waiter], timeout=0)


async def spin_by_callbacks():
    loop = asyncio.get_running_loop()

    def call_again():
        loop.call_soon(call_again)

    call_again()
    await asyncio.Event().wait()


async def spin_by_new_tasks():
    async def short():
        pass

    while True:
        await asyncio.create_task(short())


SPINNERS = {
    spin_by_yielding: r"\n  1000 times the-spinner at test_clock.py:\d+ \(spin_by_yielding\) > tasks",
    spin_by_waiting: r"\n  \d+ times the-spinner at test_clock.py:\d+ \(spin_by_waiting\) > tasks",
    spin_by_callbacks: r"\n  1000 times .*call_again at test_clock.py:\d+ \(call_again\)",
    spin_by_new_tasks: r"\n  500 times the-spinner at test_clock.py:\d+ \(spin_by_new_tasks\)",
}


@pytest.mark.parametrize("spin", SPINNERS)
@pytest.mark.parametrize("order", ["fifo", "seeded"])
def test_livelock_names_the_task_and_the_line_that_spins(run, spin, order):
    async def main():
        idle = [asyncio.create_task(asyncio.sleep(100)) for _ in range(60)]
        await asyncio.sleep(5)
        await asyncio.create_task(spin(), name="the-spinner")
        await asyncio.gather(*idle)

    with pytest.raises(VirtualLivelockError, match=SPINNERS[spin]) as error:
        run(main, order=order, limit_s=5.1, max_steps_at_one_time=3_000, collect_every=1_000)
    assert "the time does not move, at 5.0" in str(error.value)
    assert "sleep-" not in str(error.value)  # the idle ones


def test_spinner_that_ignores_its_cancellation_ends_too(run):
    async def main():
        while True:
            try:
                await spin_by_yielding()
            except asyncio.CancelledError:
                continue

    with pytest.raises(VirtualLivelockError) as error:
        run(main, max_steps_at_one_time=3_000, collect_every=1_000)
    assert "while its tasks were ended: VirtualLivelockError" in error.value.__notes__[0]


class CallsItself:
    """A callback without a hash."""

    __hash__ = None

    def __call__(self):
        asyncio.get_running_loop().call_soon(self)


def test_callable_object_that_spins_is_named_by_its_type(run):
    async def main():
        CallsItself()()
        await asyncio.Event().wait()

    with pytest.raises(VirtualLivelockError, match="1000 times CallsItself"):
        run(main, max_steps_at_one_time=3_000, collect_every=1_000)


def test_innermost_lines_of_a_deep_spinner_are_shown(run):
    async def nested(depth):
        await (nested(depth - 1) if depth else spin_by_yielding())

    with pytest.raises(VirtualLivelockError, match=r"\(nested\) > \.\.\. > .*\(spin_by_yielding\)"):
        run(lambda: nested(9), max_steps_at_one_time=3_000, collect_every=1_000)
