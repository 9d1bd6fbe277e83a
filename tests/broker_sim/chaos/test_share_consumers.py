"""Share consumers under chaos: hundreds of seeds were run; these are kept, and `CHAOS_SEEDS=300` runs so many."""

import os

import pytest

from broker_sim.chaos import draw_schedule, run_chaos

from .share_consumers import CONFIGS, FAULTS, orders_are_shared, rejected_orders_have_letters

SEEDS = int(os.environ.get("CHAOS_SEEDS", "4"))
POWER_LOSSES = {"lose_power": sum(FAULTS.values())}
"""Drawn beside the others, as often as all of them."""
FLUSHED = {"log.flush.interval.messages": 1}


def play(seed, faults, configs):
    outcome = run_chaos(orders_are_shared, draw_schedule(seed, faults=faults, workers=2), configs=configs)
    if outcome.error is not None:
        raise outcome.error
    (told,) = [moment.what for moment in outcome.moments if moment.who == "group"]
    assert " 0 deliveries" not in told


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_order_is_settled_and_no_settled_one_comes_again(seed):
    play(seed, FAULTS, CONFIGS)


@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_flushed_power_losses_of_any_brokers_change_nothing_of_that(seed):
    play(seed, FAULTS | POWER_LOSSES, CONFIGS | FLUSHED)


@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_every_rejected_order_has_a_dead_letter(seed):
    schedule = draw_schedule(seed, faults=FAULTS, workers=2)
    outcome = run_chaos(rejected_orders_have_letters, schedule, configs=CONFIGS)
    if outcome.error is not None:
        raise outcome.error
    (told,) = [moment.what for moment in outcome.moments if moment.who == "letters"]
    assert not told.startswith("0 rejected")
