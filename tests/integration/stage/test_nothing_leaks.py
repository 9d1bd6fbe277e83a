"""What clients leave behind in the simulator when they go while their requests are parked."""

import pytest

from broker_sim.cluster.cluster import Cluster
from integration.clients.broker_client import Append, BrokerClient, Position, batch_of
from integration.stage.stage import Stage
from integration.stage.under_test import SimulatorUnderTest

WAIT_MS = 4_000
CLIENTS = 20
PATIENT = {"broker.session.timeout.ms": "120000", "replica.lag.time.max.ms": "120000"}
"""The paused follower stays in the ISR, so that every produce has to wait."""


@pytest.mark.threads
def test_purgatories_are_empty_again_after_clients_left_their_requests_parked():
    with (
        Cluster(3, configs=PATIENT) as cluster,
        Stage(SimulatorUnderTest(cluster), "leaks") as stage,
    ):
        alone, pair = stage.topic([stage.anchor]), stage.topic([stage.anchor, stage.third])
        stage.pause(stage.third)
        for _ in range(CLIENTS):
            with BrokerClient(*stage.address(stage.anchor)) as reader:
                reader.start_fetch(Position(alone), max_wait_ms=WAIT_MS)
                stage.until(lambda: parked(cluster, "Fetch", alone), "a fetch is parked")
            with BrokerClient(*stage.address(stage.anchor)) as writer:
                writer.start_produce(Append(pair, 0, batch_of([b"a"])), timeout_ms=WAIT_MS)
                stage.until(lambda: parked(cluster, "Produce", pair), "a produce is parked")
        stage.until(lambda: not parked(cluster, "Fetch", alone), "no fetch is parked")
        stage.until(lambda: not parked(cluster, "Produce", pair), "no produce is parked")


def parked(cluster, purgatory, topic):
    """Return the operations parked on the topic's partition at the first broker."""
    (found,) = (one for one in cluster.purgatory() if (one.broker, one.name) == (1, purgatory))
    return [one for one in found.parked if f"{topic.name}-0" in map(str, one.keys)]
