"""What stays in the simulator when clients disconnect while their requests are parked."""

import pytest
from broker_sim_integration.clients.broker_client import Append, BrokerClient, Position, batch_of
from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
from broker_sim_integration.cluster_under_test.running_cluster import BROKERS, simulated_cluster
from broker_sim_integration.simulator.command import own_command
from broker_sim_integration.simulator.process import SimulatorProcess

WAIT_MS = 4_000
CLIENTS = 20
PATIENT = {"broker.session.timeout.ms": "120000", "replica.lag.time.max.ms": "120000"}
"""The paused follower stays in the ISR, so that every produce has to wait."""


@pytest.mark.threads
def test_purgatories_are_empty_again_after_clients_left_their_requests_parked():
    with (
        SimulatorProcess(own_command().arguments, brokers=BROKERS, configs=PATIENT) as simulator,
        ClusterUnderTest(simulated_cluster(simulator), "leaks") as cluster,
    ):
        alone, pair = (cluster.topics.create([cluster.first]), cluster.topics.create([cluster.first, cluster.third]))
        cluster.faults.pause(cluster.third)
        for _ in range(CLIENTS):
            with BrokerClient(*cluster.brokers.address(cluster.first)) as reader:
                reader.start_fetch(Position(alone), max_wait_ms=WAIT_MS)
                cluster.wait_until(lambda: parked(simulator, "Fetch", alone), "a fetch is parked")
            with BrokerClient(*cluster.brokers.address(cluster.first)) as writer:
                writer.start_produce(Append(pair, 0, batch_of([b"a"])), timeout_ms=WAIT_MS)
                cluster.wait_until(lambda: parked(simulator, "Produce", pair), "a produce is parked")
        cluster.wait_until(lambda: not parked(simulator, "Fetch", alone), "no fetch is parked")
        cluster.wait_until(lambda: not parked(simulator, "Produce", pair), "no produce is parked")


def parked(simulator, purgatory, topic):
    """Return the operations parked on the topic's partition at the first broker."""
    broker, *_ = simulator.control.get("/purgatory")["brokers"]
    (parked_there,) = (one["parked"] for one in broker["purgatories"] if one["name"] == purgatory)
    return [one for one in parked_there if f"{topic.name}-0" in map(str, one["keys"])]
