"""Another simulated cluster as the reference, at an address: it has to be agreed with, unless it is slow.

Against itself every difference in time is the machine's, so the comparison that must fail shows that
the one that agrees means something.
"""

import sys

import pytest
from broker_sim_integration.cluster_under_test.running_cluster import BROKERS
from broker_sim_integration.comparison.runs import KafkaSide, SimulatorSide
from broker_sim_integration.comparison.verdict import Verdict
from broker_sim_integration.reference.clusters.node_config import COMMON_CONFIGS
from broker_sim_integration.reference.progress import silent
from broker_sim_integration.reference.selection import select_reference
from broker_sim_integration.scenarios.catalogue import select
from broker_sim_integration.simulator.command import SimulatorCommand, own_command
from broker_sim_integration.simulator.process import SimulatorProcess

pytestmark = [pytest.mark.threads, pytest.mark.soak(part="mutants")]
CHOSEN = select(
    (
        "acks_1_is_answered_at_once",
        "an_empty_partition_answers_at_max_wait",
        "a_produce_wakes_a_parked_fetch",
        "a_produce_behind_a_parked_fetch_waits_for_it",
    )
)
SLOW = """
import json, subprocess, sys
from broker_sim.control.client import ControlClient
from broker_sim_integration.simulator.command import own_command
command = [*own_command().arguments, *sys.argv[1:]]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as simulator:
    ready = simulator.stdout.readline()
    for api in "Produce", "Fetch":
        fault = {"api": api, "delay_ms": 40}
        ControlClient(json.loads(ready)["control"]).request("POST", "/inject", fault)
    print(ready, end="", flush=True)
"""
"""A simulator that answers every Produce and Fetch 40 ms late."""


@pytest.fixture(scope="module")
def reference():
    command = own_command().arguments
    with SimulatorProcess(command, brokers=BROKERS, configs=COMMON_CONFIGS) as other:
        side = KafkaSide(select_reference(f"bootstrap={other.bootstrap_servers}"), silent)
        with side.open(()) as runner:
            yield runner


@pytest.fixture
def compare(reference, play):
    """Return a function that runs the scenarios on both: `compare(command)` gives the results."""

    def compare(command):
        with SimulatorSide(command).open(()) as simulator:
            return [play(scenario, reference, simulator) for scenario in CHOSEN]

    return compare


def test_the_simulator_agrees_with_another_one(compare):
    for result in compare(own_command()):
        assert result.verdict is Verdict.AGREED, result.trouble or result.differences


def test_a_simulator_that_is_40_ms_late_does_not_agree(compare):
    slow = SimulatorCommand((sys.executable, "-c", SLOW), "slow on purpose")
    results = compare(slow)
    assert {one.field for result in results for one in result.differences} == {"late"}
    assert Verdict.LATE in {result.verdict for result in results}
