"""Schedules as data and as text."""

from dataclasses import replace

import pytest

from broker_sim.chaos import Action, Schedule, ScheduleError, draw_schedule
from broker_sim.chaos.faults.kinds import KINDS
from broker_sim.chaos.faults.weights import weights_of
from broker_sim.runtime.virtual.task_order import Deviation

TEXT = """
    # of a report
    seed=7 brokers=3 workers=2 latency_ms=5 duration_ms=20000
    8100 error broker-2 for=1000 value=Produce/NOT_LEADER_OR_FOLLOWER

    3200 crash worker-1 for=3000   # the one that matters
    9000 cut worker-2 broker-1 for=100 value=to
    4100.05   order 3 1
    12 order 0 2 5
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
        deviations=(Deviation(12_000_000, 0, 2, 5), Deviation(4_100_050_000, 3, 1)),
    )
    assert Schedule.parse("seed=1 order=seeded").order == "seeded"


@pytest.mark.parametrize("seed", range(50))
def test_drawn_schedules_are_text_and_back(seed):
    schedule = draw_schedule(seed, order=("fifo", "seeded")[seed % 2])
    assert Schedule.parse(str(schedule)) == schedule
    assert schedule.actions
    deviations = tuple(Deviation(10**each + 1, seed, 1 + each, 1 + each % 3) for each in range(15))
    with_order = replace(schedule, deviations=deviations)
    assert Schedule.parse(str(with_order)) == with_order


def test_latency_is_drawn_unless_it_is_given():
    assert {draw_schedule(seed).latency_ms for seed in range(20)} == {0, 5, 20}
    assert draw_schedule(3, latency_ms=7) == replace(draw_schedule(3), latency_ms=7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the schedule is empty"),
        ("brokers=3", "seed=N is required"),
        ("seed=x", "seed takes whole numbers"),
        ("seed=1 partitions=3", "unknown option 'partitions'"),
        ("seed=1\ncrash worker-1", "an action has the form"),
        ("seed=1\n100", "an action has the form"),
        ("seed=1\n100 crash worker-1 for=long", "an action has the form"),
        ("seed=1\n100 crash worker-1 until=3", "unknown option 'until'"),
        ("seed=1 order=any", "order must be one of fifo, seeded"),
        (
            "seed=1\n5 kill broker-9",
            "^5 kill broker-9: unknown broker 'broker-9'; brokers: broker-1, broker-2, broker-3$",
        ),
        ("seed=1\n5 crash worker-3", "unknown worker 'worker-3'; workers=2 are worker-1, worker-2$"),
        ("seed=1 workers=1\n5 cut worker-2 broker-1", "unknown worker 'worker-2'; workers=1 are worker-1$"),
        ("seed=1\n5 cut worker-1 broker-0", "unknown broker 'broker-0'; "),
        ("seed=1 brokers=1\n5 slow_link broker-1 broker-2 value=5", "; brokers: broker-1$"),
        ("seed=1\n4100.1234567 order 3 1", "write a deviation as"),
        ("seed=1\n4100 order 3", "write a deviation as"),
    ],
)
def test_bad_text_is_refused_in_one_line(text, message):
    with pytest.raises(ScheduleError, match=message) as refused:
        Schedule.parse(text)
    assert "\n" not in str(refused.value)


def test_only_named_kinds_are_drawn():
    drawn = {action.kind for seed in range(50) for action in draw_schedule(seed, faults={"crash", "pause"}).actions}
    assert drawn == {"crash", "pause"}


def test_every_kind_is_drawn_with_values_that_it_has():
    usual = {name for name in KINDS if KINDS[name].weight}
    actions = [action for seed in range(300) for action in draw_schedule(seed, faults=usual).actions]
    assert {action.kind for action in actions} == usual
    for action in actions:
        kind = KINDS[action.kind]
        assert action.value in (kind.values or ("",))
        assert bool(action.for_ms) <= kind.lasts
        assert len(action.on) == 1 + kind.has_far_end


def test_weights_say_how_often():
    actions = [
        action.kind for seed in range(200) for action in draw_schedule(seed, faults={"crash": 9, "pause": 1}).actions
    ]
    assert 0.8 < actions.count("crash") / len(actions) < 0.98


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"crush"}, "unknown fault 'crush' .did you mean crash.*; choose from crash"),
        ({"explode"}, "unknown fault 'explode'"),
        ({"crash": -1}, "one must be above 0"),
        ({"crash": 0}, "one must be above 0"),
        ((), "one must be above 0"),
    ],
)
def test_bad_wishes_are_refused(faults, message):
    with pytest.raises(ValueError, match=message):
        weights_of(faults)
