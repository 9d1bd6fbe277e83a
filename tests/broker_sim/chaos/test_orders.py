"""Orders of tasks in runs under chaos: they repeat as deviations, and are shrunk."""

import asyncio
from dataclasses import replace

import pytest

from broker_sim.chaos import Outcome, Schedule, run_chaos
from broker_sim.chaos.faults.shrink import shrink
from broker_sim.chaos.report import shrunk_text
from broker_sim.chaos.search import NamedTest
from broker_sim.runtime.virtual.task_order import Deviation

from .applications import commit_last, hand_over

SEEDED = Schedule(1, duration_ms=0, order="seeded")
CHANCE = tuple(Deviation(1_000 * each, each % 3, 1 + each % 5) for each in range(1_412))


def test_deviations_of_a_seeded_run_repeat_it():
    schedule = replace(SEEDED, latency_ms=5)
    seeded = run_chaos(commit_last, schedule)
    given = run_chaos(commit_last, replace(schedule, order="fifo", deviations=seeded.deviations))
    assert len(seeded.deviations) > 10
    assert (given.digest, given.deviations) == (seeded.digest, seeded.deviations)


def test_runs_that_differ_in_the_order_of_tasks_alone_have_different_digests():
    seen = []

    async def note(me):
        await asyncio.sleep(1)
        seen.append(me.name)
        await asyncio.sleep(100)

    async def test(chaos):
        seen.clear()
        chaos.start(note, 2)
        await asyncio.sleep(2)
        assert seen == ["worker-1", "worker-2"]

    passed = run_chaos(test, Schedule(1, duration_ms=0))
    failed = run_chaos(test, Schedule(3, duration_ms=0, order="seeded"))
    assert (passed.error, failed.invariant is None) == (None, False)
    assert passed.digest != failed.digest


def test_order_that_a_failure_needs_is_shrunk_and_reported(monkeypatch):
    monkeypatch.syspath_prepend(__file__.rpartition("/")[0])
    test = NamedTest.of("applications:hand_over", order="seeded", faults={"pause"}, latency_ms=20)
    failure = next(filter(None, map(test.examine, map(test.draw, range(9)))))
    small = failure.small.schedule
    assert (small.order, small.latency_ms, small.actions) == ("fifo", 0, ())
    assert len(small.deviations) == 1
    assert failure.repeats
    assert test.run(replace(small, deviations=())).error is None
    (told,) = [each for each in failure.small.moments if each.who == "ORDER"]
    assert told.what.startswith("worker-2 runs before ")
    assert "worker-1" in told.what
    assert told.at_s == small.deviations[0].at_ns / 1e9
    text = str(failure)
    assert " deviations from first in, first out -> 0 faults, 1 deviation, in " in text
    assert str(small).splitlines()[-1] in text
    assert failure.to_json()["deviations"] == len(failure.first.deviations) > 1
    assert Schedule.parse("\n".join(failure.to_json()["schedule"])) == small


def ended(schedule, invariant, deviations=()):
    return Outcome(schedule, "", 0, (), invariant, deviations=deviations)


def test_fewest_deviations_are_found_beside_the_fewest_faults():
    first = Schedule.parse("seed=1 order=seeded\n100 crash worker-1 for=100\n900 roll")
    needed = {CHANCE[300], CHANCE[1_200]}

    def run(schedule):
        taken = CHANCE if schedule.order == "seeded" else schedule.deviations
        kinds = {action.kind for action in schedule.actions}
        return ended(schedule, "lost" if needed <= set(taken) and "crash" in kinds else None, taken)

    shrunk = shrink(ended(first, "lost", CHANCE), run)
    small = shrunk.schedule
    assert (small.order, set(small.deviations)) == ("fifo", needed)
    assert [action.kind for action in small.actions] == ["crash"]
    assert shrunk.tries < 100
    assert shrunk_text(ended(first, "lost", CHANCE), ended(small, "lost", small.deviations)) == (
        "2 faults and 1 412 deviations from first in, first out -> 1 fault, 2 deviations"
    )


def test_deviations_that_a_run_has_not_taken_are_left_out_at_once():
    def run(schedule):
        taken = schedule.deviations[:7] if schedule.order == "fifo" else CHANCE
        return ended(schedule, "lost" if CHANCE[0] in taken else None, taken)

    shrunk = shrink(ended(replace(SEEDED, seed=1), "lost", CHANCE), run)
    assert shrunk.schedule.deviations == CHANCE[:1]
    assert shrunk.tries < 12


def test_order_that_a_failure_does_not_need_becomes_first_in_first_out():
    first = replace(SEEDED, duration_ms=20_000)
    shrunk = shrink(ended(first, "lost", CHANCE), lambda each: ended(each, "lost"))
    assert (shrunk.schedule.order, shrunk.schedule.deviations) == ("fifo", ())
    assert shrunk.tries == 2


@pytest.mark.parametrize("deviations", [(), CHANCE[:3]])
def test_failure_that_no_deviations_repeat_keeps_the_seeded_order(deviations):
    def run(schedule):
        return ended(schedule, "lost" if schedule.order == "seeded" else None, deviations)

    first = Schedule.parse("seed=1 order=seeded\n100 crash worker-1 for=100\n900 roll")
    small = shrink(ended(first, "lost", deviations), run).schedule
    assert (small.order, small.actions, small.deviations) == ("seeded", (), ())
    text = shrunk_text(ended(first, "lost", CHANCE), ended(small, "lost", deviations))
    assert text == "2 faults and 1 412 deviations from first in, first out -> 0 faults, the seeded order"


@pytest.mark.parametrize(("needed_ms", "left_ms"), [(0, 0), (3, 5), (20, 20)])
def test_latency_is_drawn_back_as_far_as_the_failure_allows(needed_ms, left_ms):
    def run(schedule):
        return ended(schedule, "lost" if schedule.latency_ms >= needed_ms else None)

    shrunk = shrink(ended(Schedule(1, latency_ms=20, duration_ms=0), "lost"), run)
    assert shrunk.schedule.latency_ms == left_ms


def test_test_that_ends_in_the_moment_of_a_failure_is_an_outcome():
    async def test(chaos):
        async def worker():
            await asyncio.sleep(1)
            raise ValueError

        ends = asyncio.ensure_future(asyncio.sleep(1))
        chaos.start(worker)
        await ends

    assert run_chaos(test, Schedule(1)).invariant == "ValueError"


def test_hand_over_never_fails_in_first_in_first_out():
    assert not any(run_chaos(hand_over, Schedule(seed, duration_ms=0)).error for seed in range(3))
