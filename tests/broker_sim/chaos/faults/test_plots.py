"""Plots: faults that belong together, drawn by name beside kinds of faults."""

import asyncio
import random

import pytest

from broker_sim.chaos import draw_schedule, run_chaos
from broker_sim.chaos.faults.checks import check_action
from broker_sim.chaos.faults.plots import PLOT_WEIGHTS, PLOTS, FaultScope, draw_plot
from broker_sim.chaos.faults.weights import kinds_beside_a_command, weights_beside_a_command, weights_of

DURATION_MS = 20_000
SCOPE = FaultScope(brokers=3, partitions=2, duration_ms=DURATION_MS, workers=2)


@pytest.mark.parametrize("name", PLOTS)
def test_plot_has_possible_actions_that_are_over_when_the_run_is(name):
    plots = [draw_plot(random.Random(seed), name, SCOPE) for seed in range(30)]
    actions = [action for plot in plots for action in plot]
    for action in actions:
        check_action(action)
    assert min(action.at_ms for action in actions) >= 0
    assert max(action.at_ms + action.for_ms for action in actions) <= DURATION_MS
    assert len({str(plot) for plot in plots}) > 1


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("crash_in_a_move", {"move_groups", "crash"}),
        ("long_freeze", {"freeze"}),
        ("overlapping_deploys", {"deploy"}),
        ("roll_in_a_transaction", {"hold", "roll"}),
        ("leader_ahead", {"cut_link", "isolate", "kill", "pause", "stop"}),
    ],
)
def test_named_plot_is_drawn_and_alone(name, kinds):
    drawn = {action.kind for seed in range(30) for action in draw_schedule(seed, faults=[name]).actions}
    assert drawn == kinds


def test_freeze_of_a_plot_outlasts_a_session():
    lengths_ms = [
        action.for_ms
        for seed in range(20)
        for action in draw_plot(random.Random(seed), "long_freeze", SCOPE)
        if action.at_ms < DURATION_MS - 8_000
    ]
    assert min(lengths_ms) >= 8_000


def test_second_deploy_begins_before_the_first_is_over():
    async def test(chaos):
        async def main():
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(8)

        chaos.start(main, count=2)
        await chaos.faults_over()

    schedule = draw_schedule(3, faults=["overlapping_deploys"], most_faults=1)
    outcome = run_chaos(test, schedule)
    assert outcome.error is None
    first, second = (action.at_ms for action in schedule.actions)
    assert second - first < 8_000


def test_some_plots_are_drawn_by_default_and_all_can_be_named():
    assert weights_of(["crash", "long_freeze", "alone"]) == {"crash": 3, "long_freeze": 0.5, "alone": 1}
    assert weights_of({"long_freeze": 2}) == {"long_freeze": 2}
    assert PLOTS.keys() & weights_of(None).keys() == PLOT_WEIGHTS.keys()
    assert not PLOTS.keys() & set(kinds_beside_a_command())
    with pytest.raises(ValueError, match="virtual time only"):
        weights_beside_a_command(["alone"])
