"""All orders in which workers can take their turns: each is run once, and the bad ones are found."""

import asyncio
from itertools import permutations
from math import comb
from pathlib import Path

import pytest

from broker_sim.chaos import Schedule
from broker_sim.chaos.chaos import InvariantError
from broker_sim.chaos.exploring import Exploration, explore
from broker_sim.chaos.run import ScheduledRun
from broker_sim.chaos.search import NamedTest
from broker_sim.chaos.settings import Settings

from .applications import forget_a_broker, hand_over, heard

EXAMPLES = Path(__file__).parents[3] / "examples" / "orders"
CALM = Schedule(1, brokers=1, workers=2, duration_ms=0)


def explored(test, most=1_000):
    def run(going_first):
        one = ScheduledRun(CALM, going_first=going_first)
        return one.run_whole(test)

    return explore(run, most)


def turns_of(*counts, seen=None):
    """A test whose workers take so many turns each at the same time; `seen` gets the order of each run."""

    async def test(chaos):
        order = []

        async def worker(me, turns):
            for number in range(turns):
                order.append(f"{me.name[-1]}{number}")
                await asyncio.sleep(0)

        for turns in counts:
            chaos.start(lambda me, turns=turns: worker(me, turns))
        await asyncio.sleep(1)
        seen.append(tuple(order))

    return test


def test_every_interleaving_is_run_once():
    seen = []
    found = explored(turns_of(2, 3, seen=seen))
    # Each worker ends with a turn more: it comes back from its last sleep.
    assert str(found) == f"{comb(3 + 4, 3)} orders explored, all"
    assert len(set(seen)) == comb(2 + 3, 2)
    for order in seen:
        assert [turn for turn in order if turn[0] == "1"] == ["10", "11"]
        assert [turn for turn in order if turn[0] == "2"] == ["20", "21", "22"]


def test_three_workers_take_turns_in_each_order():
    async def test(chaos):
        order = []

        async def worker(me):
            order.append(me.name)

        chaos.start(worker, count=3)
        await asyncio.sleep(1)
        seen.append(tuple(order))

    seen = []
    assert str(explored(test)) == "6 orders explored, all"
    assert sorted(seen) == sorted(permutations(["worker-1", "worker-2", "worker-3"]))


def test_bound_says_how_far_it_came():
    test = turns_of(2, 2, seen=[])  # 20 orders, with the turns that end them
    none, some = explored(test, most=3), explored(test, most=19)
    assert str(none) == "stopped after 3 orders: there are more; all with at most 0 changes were explored"
    assert (some.orders, some.is_complete) == (19, False)
    assert 1 <= some.changes <= 4
    assert str(explored(test, most=20)) == "20 orders explored, all"


def test_turns_at_other_times_and_turns_of_libraries_have_one_order():
    async def test(chaos):
        async def worker(me):
            await asyncio.sleep(int(me.name[-1]))  # they meet when they start only
            await asyncio.gather(*map(asyncio.sleep, [0.5, 0.5, 0.5]))

        chaos.start(worker, count=2)
        await asyncio.sleep(5)

    assert str(explored(test)) == "2 orders explored, all"


def test_turn_that_another_one_brings_about_is_not_before_it():
    async def test(chaos):
        given = asyncio.Event()

        async def give():
            await asyncio.sleep(1)
            given.set()

        async def take():
            await given.wait()

        chaos.start(give)
        await asyncio.sleep(0.5)
        chaos.start(take)
        await asyncio.sleep(1)

    assert str(explored(test)) == "1 order explored, all"


def test_race_is_found_with_the_fewest_changes_and_repeats_as_text():
    found = explored(hand_over)
    assert str(found) == "2 orders explored, the last one fails"
    assert len(found.failure.schedule.deviations) == 1
    again = Schedule.parse(str(found.failure.schedule))
    outcome = ScheduledRun(again).run_whole(hand_over)
    assert (outcome.invariant, outcome.digest) == ("IndexError", found.failure.digest)


def test_code_of_the_test_itself_is_no_turn():
    async def test(chaos):
        async def worker():
            await asyncio.sleep(1)

        chaos.start(worker)
        chaos.check(lambda: True, "nothing is wrong")
        for _ in range(20):
            await asyncio.sleep(0.1)
        if chaos.kafka is None:
            raise InvariantError("never")

    assert str(explored(test)) == "1 order explored, all"


def test_example_fails_in_one_order_only_and_its_twin_in_none(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    wrong, mended = (NamedTest.of(f"positions_in_database:test_{which}") for which in ("wrong", "mended"))
    assert wrong.settings.exhaustive
    assert wrong.run(wrong.draw(0)).error is None
    found = wrong.explore(wrong.draw(0))
    assert str(found) == "2 orders explored, the last one fails"
    failure = wrong.shrink(found.failure)
    assert len(failure.small.schedule.deviations) == 1
    assert failure.repeats
    assert str(mended.explore(mended.draw(0))) == "3 orders explored, all"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Exploration(1_024, is_complete=True, changes=9), "1 024 orders explored, all"),
        (
            Exploration(10_000, is_complete=False, changes=1),
            "stopped after 10 000 orders: there are more; all with at most 1 change were explored",
        ),
    ],
)
def test_number_of_explored_orders_is_reported(found, text):
    assert str(found) == text


def explored_brokers(test, most=1_000):
    schedule = Schedule(1, brokers=3, workers=1, duration_ms=0)

    def run(going_first):
        one = ScheduledRun(schedule, Settings(exhaustive="brokers"), going_first=going_first)
        return one.run_whole(test)

    return explore(run, most)


def test_messages_of_brokers_arrive_in_each_order(monkeypatch):
    async def test(chaos):
        with monkeypatch.context() as patch:
            ids = heard(chaos.kafka.nodes.controller, patch)
            await asyncio.sleep(0.6)  # one heartbeat of each
            seen.append(tuple(ids))

    seen = []
    assert str(explored_brokers(test)) == "6 orders explored, all"
    assert sorted(seen) == sorted(permutations([1, 2, 3]))
    assert explored_brokers(test, most=4).orders == 4


def test_defect_that_one_order_of_brokers_shows_is_found_and_repeats_as_text():
    calm = Schedule(1, brokers=3, workers=1, duration_ms=0)
    assert ScheduledRun(calm).run_whole(forget_a_broker).error is None
    found = explored_brokers(forget_a_broker)
    assert str(found) == "6 orders explored, the last one fails"
    assert len(found.failure.schedule.deviations) == 2
    again = Schedule.parse(str(found.failure.schedule))
    assert " arrival " in str(again)
    outcome = ScheduledRun(again, observe=True).run_whole(forget_a_broker)
    assert outcome.invariant == "no broker is forgotten"
    assert outcome.deviations == again.deviations
    assert "the controller receives a message from broker 3 before one from broker 1" in [
        moment.what for moment in outcome.moments
    ]
