"""What has to be seen in at least one seed of a search: by name, with the number of seeds, and a failure without."""

import asyncio

import pytest

from broker_sim.chaos import Schedule, run_chaos
from broker_sim.chaos.search import NamedTest, run_seed
from broker_sim.chaos.sightings import Sightings

CRASH = Schedule.parse("seed=1 brokers=1 workers=1 duration_ms=5000\n2500 crash worker-1 for=2000")
QUIET = Schedule.parse("seed=1 brokers=1 workers=1 duration_ms=5000")


async def work(chaos, busy):
    while True:
        busy.add("order")
        await asyncio.sleep(0.9)
        busy.discard("order")
        chaos.reached("between commit and work")
        await asyncio.sleep(0.1)


async def crash_while_busy(chaos):
    busy = set()
    chaos.start(lambda: work(chaos, busy))
    (worker,) = chaos.workers
    chaos.sometimes(lambda: busy and worker.process is None, "dies while busy")
    chaos.sometimes(lambda: worker.starts > 2, "dies twice")
    await chaos.faults_over()


@pytest.mark.parametrize(("schedule", "dies"), [(CRASH, True), (QUIET, False)])
def test_run_says_what_it_saw_and_passes(schedule, dies):
    outcome = run_chaos(crash_while_busy, schedule)
    assert outcome.invariant is None
    assert outcome.seen == {"between commit and work": True, "dies while busy": dies, "dies twice": False}


def test_time_line_says_by_whom_it_was_seen_first():
    moments = run_chaos(crash_while_busy, CRASH).moments
    seen = [(moment.who, moment.what) for moment in moments if moment.what.startswith("seen: ")]
    assert seen == [
        ("worker-1", "seen: between commit and work"),
        ("test", "seen: dies while busy"),
    ]


async def never_commits(chaos):
    async def commit():
        chaos.reached("commits")

    async def main():
        if chaos.workers[0].starts > 9:
            await commit()

    chaos.start(main)
    chaos.start(lambda: asyncio.sleep(9))
    await chaos.faults_over()


def test_place_that_no_run_reaches_is_in_the_outcome():
    assert run_chaos(never_commits, QUIET).seen == {"commits": False}


def test_error_of_a_condition_says_whose_it_is():
    async def test(chaos):
        chaos.sometimes(lambda: {}["missing"], "is there")
        await asyncio.sleep(1)

    outcome = run_chaos(test, QUIET)
    assert "KeyError" in outcome.text
    assert "raised by the condition of 'is there', which is called at every moment until it is true" in outcome.text


def test_search_fails_for_what_no_seed_saw_and_a_single_seed_does_not():
    search = Sightings()
    search.add({"dies while busy": True, "dies twice": False}, {})
    assert search.failure() is None
    search.add({"dies while busy": False, "dies twice": False}, {})
    assert search.lines() == ["seen: 'dies while busy' in 1 of 2 seeds, 'dies twice' in 0 of 2 seeds"]
    assert search.failure().startswith("never seen in 2 seeds: 'dies twice'; run more seeds, ")
    search.add({"dies twice": True}, {})
    assert search.failure() is None


def test_outcome_of_a_seed_says_what_was_seen():
    test = NamedTest.of(f"{__name__}:never_commits", duration_s=1)
    assert run_seed(test, 0).seen == {"commits": False}


async def after_the_faults(chaos):
    chaos.reached("the check")
    await chaos.history.nothing_lost("orders")


def faults_before(check):
    async def test(chaos):
        await chaos.kafka.create_topic("orders", partitions=1, replication_factor=1)
        chaos.start(lambda: asyncio.sleep(1))
        await chaos.faults_over()
        await check(chaos)

    return test


def test_functions_around_a_test_are_read_for_places_and_the_history():
    outcome = run_chaos(faults_before(after_the_faults), QUIET)
    assert (outcome.error, outcome.seen) == (None, {"the check": True})
