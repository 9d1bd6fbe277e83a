"""An event loop in virtual time: waiting takes no time, and ends to the millisecond."""

import asyncio
import time

import pytest

from purgatory import VirtualClock, run_virtual


def test_a_sleep_of_a_year_takes_no_time_and_moves_the_clock_by_a_year():
    clock = VirtualClock(start_ms=7)
    started = time.monotonic()
    run_virtual(asyncio.sleep(365 * 86_400), clock)
    assert clock.now_ms() == 7 + 365 * 86_400_000
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("delay_ms", [1, 3, 7, 333, 1_001, 4_097])
def test_a_sleep_ends_to_the_millisecond_wherever_the_clock_stands(delay_ms):
    async def main():
        clock = asyncio.get_running_loop().clock
        for _ in range(50):
            before_ms = clock.now_ms()
            await asyncio.sleep(delay_ms / 1_000)
            assert clock.now_ms() - before_ms == delay_ms

    run_virtual(main(), VirtualClock(start_ms=123_456_789))


def test_callbacks_run_in_the_order_of_their_times():
    order = []

    async def sleeper(seconds):
        await asyncio.sleep(seconds)
        order.append(seconds)

    async def main():
        await asyncio.gather(*map(sleeper, (3, 0.5, 100, 2)))

    run_virtual(main())
    assert order == [0.5, 2, 3, 100]


def test_a_timeout_expires():
    async def main():
        async with asyncio.timeout(30):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run_virtual(main())


@pytest.mark.threads
def test_a_thread_is_waited_for_when_nothing_else_is_scheduled():
    async def main():
        return await asyncio.to_thread(lambda: "done")

    assert run_virtual(main()) == "done"
