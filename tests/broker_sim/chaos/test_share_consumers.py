"""Share consumers under chaos: hundreds of seeds were run; these are kept, and `CHAOS_SEEDS=300` runs so many."""

import os

import pytest

from broker_sim.chaos import draw_schedule, run_chaos

from .share_consumers import CONFIGS, FAULTS, orders_are_shared

SEEDS = int(os.environ.get("CHAOS_SEEDS", "4"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_order_is_settled_and_no_settled_one_comes_again(seed):
    schedule = draw_schedule(seed, faults=FAULTS, workers=2)
    outcome = run_chaos(orders_are_shared, schedule, configs=CONFIGS)
    if outcome.error is not None:
        raise outcome.error
    (told,) = [moment.what for moment in outcome.moments if moment.who == "group"]
    assert " 0 deliveries" not in told
