"""What is seen when an error is raised, not after what surrounds it has closed."""

import asyncio
import contextlib

import pytest

from broker_sim.runtime.virtual import run
from broker_sim.testing.failure_watch import MAX_LOOKS, FailureWatch


@contextlib.asynccontextmanager
async def closing_in(seconds):
    try:
        yield
    finally:
        await asyncio.sleep(seconds)


def seen_when_it_fails(test, looks=None):
    """Run the test; return at which time the look was taken that counts for its error."""

    async def main(loop):
        def look():
            if looks is not None:
                looks.append(loop.time())
            return f"{loop.time()}"

        watch = FailureWatch(test(), look)
        try:
            return await watch
        except (ValueError, KeyError, TimeoutError, AssertionError, ExceptionGroup) as error:
            return float(watch.at(error))

    return run(main)


async def fails_at_3():
    await asyncio.sleep(3)
    raise ValueError


async def fails_in_contexts():
    async with closing_in(10), closing_in(10):
        await fails_at_3()


async def fails_in_a_context_below():
    async with closing_in(5):
        await fails_in_contexts()


async def fails_without_contexts():
    await fails_at_3()


async def fails_by_a_timeout():
    async with asyncio.timeout(3), closing_in(10):
        await asyncio.Event().wait()


async def fails_in_a_group():
    async with asyncio.TaskGroup() as group, closing_in(10):
        group.create_task(fails_at_3())
        await asyncio.Event().wait()


async def fails_after_it_handled_another():
    try:
        await fails_at_3()
    except ValueError:
        await asyncio.sleep(10)
    async with closing_in(10):
        raise KeyError


async def fails_in_a_handler():
    try:
        await fails_at_3()
    except ValueError:
        await asyncio.sleep(10)
        async with closing_in(10):
            raise KeyError from None


@pytest.mark.parametrize(
    ("test", "at_s"),
    [
        (fails_in_contexts, 3),
        (fails_in_a_context_below, 3),
        (fails_without_contexts, 3),
        (fails_by_a_timeout, 3),
        (fails_in_a_group, 3),
        (fails_after_it_handled_another, 13),
        (fails_in_a_handler, 13),
    ],
)
def test_look_is_taken_when_the_error_is_raised(test, at_s):
    assert seen_when_it_fails(test) == at_s


def test_coroutine_runs_as_without_the_watch():
    async def test():
        task = asyncio.current_task()
        asyncio.get_running_loop().call_later(1, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(2)
        task.uncancel()
        return await asyncio.sleep(1, "result"), asyncio.get_running_loop().time()

    assert seen_when_it_fails(test) == ("result", 2)


def test_many_errors_that_are_taken_are_not_all_looked_at():
    looks = []

    async def test():
        for _ in range(MAX_LOOKS * 2):
            try:
                int("")
            except ValueError:
                await asyncio.sleep(1)
        async with closing_in(1):
            raise AssertionError

    assert seen_when_it_fails(test, looks) == MAX_LOOKS * 2
    assert len(looks) == MAX_LOOKS + 1


def test_coroutine_that_does_not_end_is_reported_with_its_error():
    async def main(loop):
        watch = FailureWatch(fails_in_contexts(), lambda: f"{loop.time()}")
        task = loop.create_task(wait(watch))
        await asyncio.sleep(5)
        found = type(watch.leaving), watch.at(TimeoutError())
        task.cancel()
        await asyncio.sleep(0)
        return found

    async def wait(watch):
        await watch

    assert run(main) == (ValueError, "3.0")


async def fails_in_a_finally():
    try:
        await fails_at_3()
    finally:
        await asyncio.sleep(10)


async def fails_in_an_except_that_raises():
    try:
        await fails_at_3()
    except ValueError as error:
        await asyncio.sleep(10)
        raise KeyError from error


async def fails_below_a_handler():
    try:
        await fails_at_3()
    except ValueError:
        await fails_in_a_finally()


async def handles_it():
    try:
        await fails_at_3()
    except ValueError:
        await asyncio.sleep(10)
        async with closing_in(10):
            await asyncio.sleep(10)


async def works_on_after_it():
    with contextlib.suppress(ValueError):
        await fails_in_a_finally()
    await asyncio.sleep(10)


@pytest.mark.parametrize(
    ("test", "endings"),
    [
        (fails_in_contexts, [(3, ValueError)]),
        (fails_by_a_timeout, [(3, asyncio.CancelledError)]),
        (fails_in_a_finally, [(3, ValueError)]),
        (fails_in_an_except_that_raises, [(3, ValueError)]),
        (fails_below_a_handler, [(6, ValueError)]),
        (fails_without_contexts, []),
        (handles_it, []),
        (works_on_after_it, [(3, ValueError), (13, None)]),
    ],
)
def test_ending_begins_where_an_error_that_nobody_has_caught_waits(test, endings):
    told = []

    async def main(loop):
        def note(error):
            told.append((loop.time(), None if error is None else type(error)))

        with contextlib.suppress(ValueError, KeyError, TimeoutError):
            await FailureWatch(test(), str, note)

    run(main)
    assert told == endings
