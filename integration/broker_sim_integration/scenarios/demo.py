"""The demo: a selection of the catalogue that shows the simulator's purpose, in half a minute.

All of it is played on one cluster, on which a paused broker is fenced after three seconds and a group's
first rebalance starts soon. The selected scenarios that rely on Kafka's defaults pause no broker that long
and use no groups, so they behave there as on a cluster with defaults.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker_sim_integration.scenarios.catalogue import CATALOGUE
from broker_sim_integration.scenarios.helpers.broker_configs import QUICK_FENCING
from broker_sim_integration.scenarios.helpers.group_configs import QUICK_GROUPS

if TYPE_CHECKING:
    from broker_sim_integration.scenarios.scenario import Scenario

DEMO: Final = {
    "acks": (
        "acks_1_is_answered_at_once",
        "acks_all_is_answered_when_all_replicas_have_it",
        "parked_produces_are_answered_together_when_the_follower_goes_on",
    ),
    "timeouts": (
        "acks_all_times_out_while_a_frozen_follower_is_in_the_isr",
        "the_timeouts_of_pipelined_produces_add_up",
        "fifty_fetches_time_out_together",
    ),
    "long polls": (
        "one_produce_wakes_only_the_fetches_that_it_satisfies",
        "a_fetch_parked_at_a_follower_is_woken_by_its_replication",
        "a_record_wakes_a_fetch_of_its_partition",
        "the_high_watermark_wakes_a_fetch",
    ),
    "ISR": ("acks_all_is_answered_when_a_frozen_follower_is_fenced",),
    "rebalance": ("who_does_not_rejoin_is_removed_after_the_rebalance_timeout",),
    "failover": ("a_leader_frozen_beyond_its_session_is_replaced",),
}
"""Scenario names by subject; each scenario runs with Kafka's defaults, `QUICK_FENCING` or `QUICK_GROUPS`."""
CONFIGS: Final = QUICK_FENCING | QUICK_GROUPS


def demo_scenarios() -> list[Scenario]:
    """Return the scenarios of the demo in its order, all with the configurations of its one cluster."""
    named = {found.name: found for found in CATALOGUE}
    configs = tuple(sorted(CONFIGS.items()))
    return [replace(named[name], configs=configs) for names in DEMO.values() for name in names]
