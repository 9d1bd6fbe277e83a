"""The virtual loop itself: time, order, stepping, and that a run repeats."""

from __future__ import annotations

import asyncio
import random
import time

import pytest
from broker_sim_purgatory import Clock

from broker_sim.runtime.virtual import VirtualDeadlockError, VirtualEventLoop
from broker_sim.runtime.virtual.task_order import Deviation, GivenOrder

# -- time ---------------------------------------------------------------------------------------


def test_an_hour_of_sleep_takes_no_time(run):
    async def main():
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    start = time.monotonic()
    assert run(main) == 3600
    assert time.monotonic() - start < 60


def test_clock_of_the_loop_is_a_clock_of_the_purgatory(run):
    async def main():
        clock = asyncio.get_running_loop().clock
        assert isinstance(clock, Clock)
        await asyncio.sleep(1.5)
        return clock.now_ms(), clock.wall_clock_ms()

    assert run(main, wall_start_ms=100) == (1_500, 1_600)


def test_basic_asyncio_keeps_virtual_time(run):
    async def main():
        loop = asyncio.get_running_loop()
        times = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        times.append(loop.time())
        queue = asyncio.Queue(2)

        async def put():
            for number in range(5):
                await queue.put(number)
                await asyncio.sleep(1)

        async with asyncio.TaskGroup() as group:
            group.create_task(put())
            got = [await queue.get() for _ in range(5)]
        times.append(loop.time())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 7)
        times.append(loop.time())
        return got, times

    assert run(main) == ([0, 1, 2, 3, 4], [30, 35, 42])


def test_loop_of_floats_that_waits_for_the_rest_of_a_delay_ends(run):
    """aiokafka's Fetcher waits so; 4.1 - 4.0 < 0.1, and 4.1 + 3.6e-16 == 4.1."""

    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.sleep(4)
        start = loop.time()
        rounds = 0
        while (rest := 0.1 - (loop.time() - start)) > 0:
            await asyncio.sleep(rest)
            rounds += 1
        return rounds

    assert run(main, max_steps_at_one_time=1_000, collect_every=100) <= 3


def test_timer_never_fires_early(run):
    async def main():
        loop = asyncio.get_running_loop()
        late = []
        for number in range(1, 2_000):
            when = loop.time() + number * 1.23456789e-4
            await asyncio.sleep(when - loop.time())
            late.append(loop.time() - when)
        return min(late) > -2e-9, max(late) < 1.1e-6

    assert run(main) == (True, True)


def test_blocking_sleep_moves_the_whole_loop(run):
    async def main():
        loop = asyncio.get_running_loop()
        ran = []
        loop.call_later(1, lambda: ran.append(loop.time()))
        loop.sleep_blocking(4)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return ran, loop.time()

    assert run(main) == ([4], 4)


# -- order --------------------------------------------------------------------------------------


def test_ties_run_in_the_order_in_which_they_were_made():
    loop = VirtualEventLoop()
    ran = []
    for number in range(50):
        loop.call_later(1, ran.append, number)
    loop.call_at(1.0, ran.append, 50)
    loop.advance_to_ns(2_000_000_000)
    assert ran == list(range(51))


def test_call_later_without_delay_waits_its_turn_as_call_soon_does():
    loop = VirtualEventLoop()
    ran = []
    loop.call_soon(ran.append, 1)
    loop.call_later(0, ran.append, 2)
    loop.call_at(-5, ran.append, 3)
    loop.call_soon(ran.append, 4)
    while loop.step():
        pass
    assert (ran, loop.time()) == ([1, 2, 3, 4], 0)


async def race(tasks=8, rounds=5):
    """Return the order in which tasks that are all ready take their turns."""
    order = []

    async def runner(name):
        for number in range(rounds):
            order.append((name, number))
            await asyncio.sleep(0 if number % 2 else 1)

    await asyncio.gather(*(runner(name) for name in range(tasks)))
    return order


def test_seeded_order_differs_between_seeds_and_repeats_for_each(run):
    orders = [run(race, seed=seed, order="seeded") for seed in range(10)]
    assert orders == [run(race, seed=seed, order="seeded") for seed in range(10)]
    assert len({str(order) for order in orders}) == 10
    assert run(race, seed=1) == run(race, seed=2)
    for order in orders:
        for name in range(8):
            assert [number for who, number in order if who == name] == list(range(5))


def test_seeded_order_keeps_the_order_of_callbacks():
    loop = VirtualEventLoop(7, order="seeded")
    ran = []
    tasks = []

    async def turn(number):
        tasks.append(number)

    for number in range(100):
        loop.call_soon(ran.append, number)
        loop.create_task(turn(number))
    while loop.step():
        pass
    assert ran == sorted(tasks) == list(range(100))
    assert tasks != sorted(tasks)


def ready_callbacks(loop):
    """Make six callbacks ready, some of tasks, some of processes; return where they note that they ran."""
    ran = []

    async def turn(name):
        ran.append(name)

    one, other = loop.process("one"), loop.process("other")
    one.call(loop.call_soon, ran.append, "one-1")
    one.call(loop.call_soon, ran.append, "one-2")
    other.call(loop.call_soon, ran.append, "other-1")
    loop.call_soon(ran.append, "nobody's")
    one.start(turn("one-task"))
    return ran


@pytest.mark.parametrize(
    ("step", "place", "first"),
    [
        (0, 2, ["other-1", "one-1"]),  # of another process
        (0, 4, ["one-task", "one-1"]),  # a task
        (1, 3, ["one-1", "one-task", "one-2"]),
        (0, 1, ["one-1", "one-2"]),  # callbacks of one process keep their order
        (0, 3, ["one-1", "one-2"]),  # and those of nobody too
        (0, 9, ["one-1", "one-2"]),
    ],
)
def test_given_order_takes_another_callback_where_it_may(step, place, first):
    loop = VirtualEventLoop()
    given = Deviation(0, step, place)
    loop.task_order = GivenOrder(loop.clock, [given])
    ran = ready_callbacks(loop)
    while loop.step():
        pass
    others = [each for each in ["one-1", "one-2", "other-1", "nobody's", "one-task"] if each not in first]
    assert ran == first + others
    assert loop.task_order.deviations == (() if first == ["one-1", "one-2"] else (given,))


def test_given_order_repeats_what_chance_has_done(run):
    seeded = run(race, seed=3, order="seeded")
    deviations = run.loop.task_order.deviations
    loop = VirtualEventLoop()
    loop.task_order = GivenOrder(loop.clock, deviations)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(race()) == seeded
    assert loop.task_order.deviations == deviations


def test_unknown_order_is_refused():
    with pytest.raises(ValueError, match="choose 'fifo' or 'seeded'"):
        VirtualEventLoop(order="chaos")


def test_streams_of_chance_do_not_disturb_each_other():
    one, other = VirtualEventLoop(5), VirtualEventLoop(5)
    other.stream("unrelated").random()
    assert one.stream("a").random() == other.stream("a").random()
    assert one.stream("a") is one.stream("a")
    assert VirtualEventLoop(6).stream("a").random() != VirtualEventLoop(5).stream("a").random()


def test_streams_of_chance_are_the_same_in_each_process():
    assert VirtualEventLoop(5).stream("a").random() == random.Random("5/a").random()


# -- running and stepping -----------------------------------------------------------------------


async def program():
    """Something of everything; what it does is in the trace."""
    loop = asyncio.get_running_loop()
    loop.network.latency_ms = (0.1, 20)
    loop.network.fragments = True

    async def echo(reader, writer):
        while line := await reader.readline():
            await asyncio.sleep(loop.stream("pauses").random())
            writer.write(line)
        writer.close()

    async def client(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", 7)
        for count in range(5):
            writer.write(b"%d-%d\n" % (number, count))
            loop.trace.record("client", number, (await reader.readline()).decode().strip())
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(echo, "127.0.0.1", 7):
        async with asyncio.TaskGroup() as group:
            for number in range(10):
                group.create_task(client(number))
        await asyncio.sleep(1)


@pytest.mark.parametrize("order", ["fifo", "seeded"])
def test_same_seed_gives_the_same_trace(run, order):
    digests = {}
    for seed in (1, 2, 1, 2):
        run(program, seed=seed, order=order, trace_steps=True)
        digests.setdefault(seed, set()).add((run.loop.trace.digest(), run.loop.steps))
    assert [len(found) for found in digests.values()] == [1, 1]
    assert digests[1] != digests[2]


@pytest.mark.parametrize("order", ["fifo", "seeded"])
def test_stepping_from_outside_runs_the_same_as_running(run, order):
    run(program, seed=3, order=order)
    stepped = VirtualEventLoop(3, order=order)
    task = stepped.create_task(program())
    while not task.done():
        assert stepped.step()
    waited = VirtualEventLoop(3, order=order)
    task = waited.create_task(program())
    assert waited.run_until(task.done)
    traces = {loop.trace.digest() for loop in (run.loop, stepped, waited)}
    assert len(traces) == 1


def test_step_runs_one_callback_and_returns_whether_any_is_left():
    loop = VirtualEventLoop()
    ran = []
    loop.call_later(5, ran.append, loop.time)
    loop.call_soon(lambda: ran.append(asyncio.get_running_loop()))
    assert loop.next_due_ns() == 0
    assert loop.step()
    assert ran == [loop]
    assert loop.next_due_ns() == 5_000_000_000
    assert loop.step()
    assert (loop.time(), loop.next_due_ns(), loop.step()) == (5, None, False)
    assert asyncio._get_running_loop() is None


def test_advance_runs_what_is_due_by_then_and_ends_there():
    loop = VirtualEventLoop()
    ran = []
    for delay in (1, 2, 3):
        loop.call_later(delay, ran.append, delay)
    loop.advance_to_ns(2_000_000_000)
    assert (ran, loop.time()) == ([1, 2], 2)
    loop.advance_to_ns(2_500_000_000)
    assert (ran, loop.time()) == ([1, 2], 2.5)


def test_run_until_stops_at_the_condition_or_at_its_time():
    loop = VirtualEventLoop()
    ran = []
    for delay in (1, 2, 3):
        loop.call_later(delay, ran.append, delay)
    assert loop.run_until(lambda: 2 in ran, 10**10)
    assert (ran, loop.time()) == ([1, 2], 2)
    assert not loop.run_until(lambda: 4 in ran, 10**10)
    assert loop.time() == 10
    with pytest.raises(VirtualDeadlockError):
        loop.run_until(lambda: 4 in ran)


def test_loop_is_not_stepped_from_its_own_callbacks(run):
    async def main():
        loop = asyncio.get_running_loop()
        loop.call_soon(print)
        with pytest.raises(RuntimeError, match="from its own callbacks"):
            loop.step()

    run(main)


def test_virtual_loop_is_stepped_inside_of_a_real_one():
    async def main():
        real, outer = asyncio.get_running_loop(), asyncio.current_task()
        loop = VirtualEventLoop()
        task = loop.create_task(asyncio.sleep(60, "done"))
        loop.run_until(task.done)
        assert asyncio.get_running_loop() is real
        assert asyncio.current_task() is outer
        return task.result(), loop.time()

    assert asyncio.run(main()) == ("done", 60)


def test_after_step_sees_each_callback_and_may_end_the_run(run):
    seen = []

    def check():
        seen.append(run.loop.steps)
        if run.loop.time() >= 5:
            raise AssertionError("broken at 5 s")

    async def main():
        asyncio.get_running_loop().after_step = check
        await asyncio.sleep(1)
        await asyncio.sleep(10)

    with pytest.raises(AssertionError, match="broken at 5 s"):
        run(main)
    assert seen == list(range(seen[0], seen[0] + len(seen)))


def test_closed_loop_runs_nothing_more():
    loop = VirtualEventLoop()
    loop.close()
    for schedule in (loop.call_soon, lambda call: loop.call_later(1, call)):
        with pytest.raises(RuntimeError, match="closed"):
            schedule(print)
    coroutine = asyncio.sleep(1)
    with pytest.raises(RuntimeError, match="closed"):
        loop.create_task(coroutine)
    coroutine.close()


def test_tasks_that_were_not_made_by_the_loop_have_names_that_repeat(run):
    """aiohttp makes eager ones itself; their own names count the tasks of the process."""

    async def work():
        await asyncio.sleep(1)

    async def main():
        await asyncio.Task(work())

    digests = set()
    for _ in range(2):
        run(main, trace_steps=True)
        digests.add(run.loop.trace.digest())
        assert any("work" in event for event in run.loop.trace.recent)
    assert len(digests) == 1
