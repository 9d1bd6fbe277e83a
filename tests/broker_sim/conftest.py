"""A cluster in this process with its control port, for the tests of everything that steers it."""

import asyncio
import time

import pytest

from broker_sim.cluster.cluster import Cluster
from broker_sim.control.server import ControlServer

TIMEOUT_S = 60


@pytest.fixture
def cluster():
    # Followers' fetches stay parked: with Kafka's 500 ms none is, whenever they are sent again.
    with Cluster(3, configs={"replica.fetch.wait.max.ms": "20000"}) as made:
        yield made


@pytest.fixture
def control_url(cluster):
    """Serve the cluster's control port while the test runs."""

    async def serve():
        control = ControlServer()
        control.serve(cluster._cluster)
        return control

    def run(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, cluster._loop).result(TIMEOUT_S)

    control = run(serve())
    yield control.url
    run(control.close())


@pytest.fixture
def parked_fetch(cluster):
    """Wait until followers' fetches are parked; returns the key that they are watched under."""
    cluster.create_topic("orders", 1, 3)
    deadline = time.monotonic() + TIMEOUT_S
    while not any(
        parked
        for broker in cluster.purgatory()["brokers"]
        for purgatory in broker["purgatories"]
        for parked in purgatory["parked"]
    ):
        assert time.monotonic() < deadline
    return "orders-0"
