"""Running a program: its result, and what a failed run says."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from itertools import count

import pytest

from broker_sim.runtime.virtual import VirtualDeadlockError, VirtualEventLoop, run
from broker_sim.runtime.virtual.run import RUNS_PER_COLLECTION, garbage_of_one_run


def test_run_gives_the_program_its_loop_and_returns_its_result():
    async def main(loop):
        assert loop is asyncio.get_running_loop()
        assert isinstance(loop, VirtualEventLoop)
        return loop.seed

    assert run(main, 5) == 5


def test_error_of_a_failed_run_has_seed_time_and_last_events():
    async def main(loop):
        await asyncio.sleep(2)
        loop.trace.record("the", "event")
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong") as error:
        run(main, 17)
    (note,) = error.value.__notes__
    assert "seed 17, 2.0 s of virtual time" in note
    assert note.endswith("last events:\n  2.000000 the event")


def test_first_error_counts_and_those_of_the_end_are_added():
    async def main(loop):
        async def waits():
            try:
                await asyncio.Event().wait()
            finally:
                await loop.create_future()

        await asyncio.gather(waits())

    with pytest.raises(VirtualDeadlockError, match="at 0\\.0 s") as error:
        run(main)
    assert "while its tasks were ended: VirtualDeadlockError" in error.value.__notes__[0]


def test_error_in_the_last_step_ends_the_run_with_itself():
    ended = []

    async def main(loop):
        async def waits():
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(1)
                ended.append(loop.time())

        loop.other = loop.create_task(waits())
        await asyncio.sleep(1)
        loop.call_exception_handler({"message": "lost", "exception": ValueError("wrong")})

    with pytest.raises(ValueError, match="wrong") as error:
        run(main)
    assert ended == [2.0]
    assert not any("while its tasks" in note for note in error.value.__notes__)


@pytest.mark.parametrize("is_watched", [False, True])
def test_failed_unawaited_task_is_noticed_at_once(is_watched):
    noticed = []

    async def fails():
        raise ValueError("wrong")

    async def main(loop):
        loop.set_exception_handler(lambda loop, _: noticed.append(loop.time()))
        if is_watched:
            loop.after_step = lambda: None
        loop.create_task(fails())
        await asyncio.sleep(1)
        return list(noticed)

    assert run(main) == [0.0]


def test_tasks_get_time_to_end_after_the_limit():
    ended = []

    async def main(loop):
        async def waits():
            try:
                while True:  # noqa: ASYNC110 - a program that hangs
                    await asyncio.sleep(1)
            finally:
                await asyncio.sleep(60)
                ended.append(loop.time())

        await asyncio.gather(waits())

    with pytest.raises(Exception, match="more than the allowed"):
        run(main, limit_s=10)
    assert ended == [70]


def test_tasks_end_when_a_check_after_each_step_fails():
    ended = []

    def check():
        raise ValueError("violated")

    async def main(loop):
        try:
            loop.after_step = check
            await asyncio.sleep(1)
        finally:
            await asyncio.sleep(1)
            ended.append(loop.time())

    with pytest.raises(ValueError, match="violated") as error:
        run(main)
    assert ended == [2]
    assert "while its tasks were ended" not in "".join(error.value.__notes__)


@pytest.fixture
def no_collection_is_due(monkeypatch):
    """Let the next runs not be the one in fifty that looks for all garbage, whatever ran before."""
    monkeypatch.setattr(sys.modules[run.__module__], "_runs", count(1))


@pytest.mark.usefixtures("no_collection_is_due")
def test_runs_own_garbage_is_gone_and_others_is_left_alone():
    class Cycle:
        def __init__(self):
            self.itself = self

    inner = []

    async def main(_):
        inner.append(weakref.ref(Cycle()))
        await asyncio.sleep(1)

    was_on = gc.isenabled()
    gc.disable()
    try:
        outer = weakref.ref(Cycle())
        run(main)
        assert outer() is not None
        assert inner[0]() is None
    finally:
        if was_on:
            gc.enable()
    assert gc.get_freeze_count() == 0


def test_garbage_that_a_caller_holds_beyond_its_run_is_collected_later():
    class Cycle:
        def __init__(self):
            self.itself = self

    def run_and_hold(left):
        held = []

        async def main(_):
            held.append(Cycle())
            left.append(weakref.ref(held[0]))

        run(main)

    left = []
    for _ in range(3 * RUNS_PER_COLLECTION):
        run_and_hold(left)
    assert sum(reference() is not None for reference in left) <= RUNS_PER_COLLECTION


@pytest.mark.usefixtures("no_collection_is_due")
def test_garbage_that_a_caller_holds_is_collected_at_once_around_the_run():
    class Cycle:
        def __init__(self):
            self.itself = self

    left = []

    def run_and_hold():
        held = [Cycle()]
        left.append(weakref.ref(held[0]))

        async def main(_):
            assert held

        run(main)

    was_on = gc.isenabled()
    gc.disable()
    try:
        outer = weakref.ref(Cycle())
        with garbage_of_one_run():
            run_and_hold()
        assert left[0]() is None
        assert outer() is not None
        run_and_hold()
        assert left[1]() is not None
    finally:
        if was_on:
            gc.enable()
    assert gc.isenabled() == was_on
    assert gc.get_freeze_count() == 0


def test_objects_that_were_frozen_before_a_run_stay_frozen():
    old = [object()]

    def is_frozen():
        return not any(live is old for live in gc.get_objects())

    gc.freeze()
    try:

        async def main(_loop):
            assert is_frozen()

        run(main)
        assert is_frozen()
    finally:
        gc.unfreeze()
    assert not is_frozen()


def test_no_garbage_of_before_is_found_in_a_run_where_objects_are_frozen():
    acted_in = []
    now = ["before"]

    class Acts:
        def __del__(self):
            acted_in.append(now[0])

    async def main(_loop):
        now[0] = "run"
        gc.collect()

    was_on = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        garbage = Acts()
        garbage.itself = garbage
        del garbage
        run(main)
        assert acted_in == ["before"]
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


def test_run_in_a_running_loop_leaves_that_loop_as_it_was():
    async def cell():
        async def main(loop):
            await asyncio.sleep(5)
            return loop.time()

        task = asyncio.current_task()
        virtual_s = run(main)
        assert asyncio.current_task() is task
        await asyncio.sleep(0)
        return virtual_s

    assert asyncio.run(cell()) == 5.0
