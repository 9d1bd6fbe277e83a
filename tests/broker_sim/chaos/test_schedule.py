"""Schedules as data and as text."""

import pytest

from broker_sim.chaos import Action, Schedule, ScheduleError, draw_schedule
from broker_sim.chaos.kinds import KINDS, weights_of

TEXT = """
    # of a report
    seed=7 brokers=3 workers=2 latency_ms=5 duration_ms=20000
    8100 error broker-2 for=1000 value=Produce/NOT_LEADER_OR_FOLLOWER

    3200 crash worker-1 for=3000   # the one that matters
    9000 cut worker-2 broker-1 for=100 value=to
"""


def test_text_is_read():
    assert Schedule.parse(TEXT) == Schedule(
        7,
        latency_ms=5,
        actions=(
            Action(3200, "crash", ("worker-1",), 3000),
            Action(8100, "error", ("broker-2",), 1000, "Produce/NOT_LEADER_OR_FOLLOWER"),
            Action(9000, "cut", ("worker-2", "broker-1"), 100, "to"),
        ),
    )


@pytest.mark.parametrize("seed", range(50))
def test_drawn_schedules_are_text_and_back(seed):
    schedule = draw_schedule(seed)
    assert Schedule.parse(str(schedule)) == schedule
    assert schedule.actions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty schedule"),
        ("brokers=3", "give numbers for seed"),
        ("seed=x", "give numbers for seed"),
        ("seed=1 partitions=3", "give numbers for seed"),
        ("seed=1\ncrash worker-1", "write an action as"),
        ("seed=1\n100", "write an action as"),
        ("seed=1\n100 crash worker-1 for=long", "write an action as"),
        ("seed=1\n100 crash worker-1 until=3", "no 'until'"),
    ],
)
def test_bad_text_is_refused_in_one_line(text, message):
    with pytest.raises(ScheduleError, match=message) as refused:
        Schedule.parse(text)
    assert "\n" not in str(refused.value)


def test_only_the_wanted_kinds_are_drawn():
    drawn = {
        action.kind
        for seed in range(50)
        for action in draw_schedule(seed, faults={"crash", "pause"}).actions
    }
    assert drawn == {"crash", "pause"}


def test_every_kind_is_drawn_with_values_that_it_has():
    actions = [action for seed in range(300) for action in draw_schedule(seed).actions]
    assert {action.kind for action in actions} == set(KINDS)
    for action in actions:
        kind = KINDS[action.kind]
        assert action.value in (kind.values or ("",))
        assert bool(action.for_ms) <= kind.lasts
        assert len(action.on) == 1 + kind.whole_side


def test_weights_say_how_often():
    actions = [
        action.kind
        for seed in range(200)
        for action in draw_schedule(seed, faults={"crash": 9, "pause": 1}).actions
    ]
    assert 0.8 < actions.count("crash") / len(actions) < 0.98


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"explode"}, "there is no fault 'explode'; choose from crash"),
        ({"crash": -1}, "weights above 0"),
        ({"crash": 0}, "weights above 0"),
        ((), "weights above 0"),
    ],
)
def test_bad_wishes_are_refused(faults, message):
    with pytest.raises(ValueError, match=message):
        weights_of(faults)
