from __future__ import annotations

import asyncio
import gc
import sys

import pytest

from broker_sim.runtime.virtual.core.futures import OrderedWeakSet


def order_in_set(run, *, noise: int):
    """Return the order in which a set of futures and tasks is iterated, with other addresses."""
    ballast = [bytearray(17 * number % 600) for number in range(noise)]

    async def main():
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in range(500)]
        tasks = [asyncio.create_task(asyncio.sleep(number)) for number in range(100)]
        members = {*futures, *tasks}
        done, pending = await asyncio.wait(tasks, timeout=50)
        names = [task.get_name() for part in (done, pending) for task in part]
        assert ballast is not None
        return [futures.index(m) if m in futures else tasks.index(m) for m in members], names

    return run(main)


def test_sets_of_futures_and_tasks_have_the_same_order_in_each_run(run):
    first = order_in_set(run, noise=0)
    ballast = [object() for _ in range(12_345)]
    assert all(order_in_set(run, noise=noise) == first for noise in (1_000, 7))
    assert ballast


def test_names_of_tasks_are_the_same_in_each_run(run):
    async def main():
        tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(2)]
        return [task.get_name() for task in (asyncio.current_task(), *tasks)]

    names = run(main)
    assert names == run(main)
    assert names[1:] == ["sleep-2", "sleep-3"]
    assert names[0].endswith("main-1")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12: make test-pythons")
def test_eager_tasks_have_numbers_and_names_too(run):
    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        began = []

        async def note():
            began.append(1)
            await asyncio.sleep(1)

        task = asyncio.create_task(note())
        assert began == [1]
        await task
        return task.get_name().rsplit(".", 1)[-1], hash(task) < 100

    assert run(main) == ("note-2", True)


def test_other_task_factories_are_used_as_they_are(run):
    class Task(asyncio.Task):
        pass

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro, **options: Task(coro, loop=loop, **options))
        task = asyncio.create_task(asyncio.sleep(1))
        await task
        return type(task), task.get_name()

    assert run(main) == (Task, "sleep-2")


def test_futures_are_equal_to_themselves_only(run):
    async def main():
        one, other = (asyncio.get_running_loop().create_future() for _ in range(2))
        return one == one, one == other, {one: 1}[one]  # noqa: PLR0124 - that is the claim

    assert run(main) == (True, False, 1)


def test_asynchronous_generators_are_closed_in_the_order_in_which_they_began(run):
    closed = []

    async def count(name):
        try:
            yield 1
            yield 2
        finally:
            closed.append(name)

    async def main():
        generators = [count(number) for number in range(50)]
        for generator in generators:
            await anext(generator)
        asyncio.get_running_loop().kept = generators

    run(main)
    # All are closed at once: each takes its turn.
    assert closed == list(range(50))


@pytest.mark.usefixtures("collects_little")
def test_ordered_weak_set_drops_dead_members():
    async def generator():
        yield

    members = OrderedWeakSet()
    member, dropped = generator(), generator()
    members.add(member)
    members.add(dropped)
    del dropped
    gc.collect()
    assert list(members) == [member]
    members.discard(member)
    assert len(members) == 0
    members.add(member)
    members.clear()
    assert list(members) == []
