"""A cluster in this process with its control port, for the tests of everything that steers it."""

import time

import pytest

from broker_sim.cluster.cluster import Cluster

TIMEOUT_S = 60


@pytest.fixture
def cluster():
    # Followers' fetches stay parked: with Kafka's 500 ms none is, whenever they are sent again.
    with Cluster(3, configs={"replica.fetch.wait.max.ms": "20000"}, control=True) as made:
        yield made


@pytest.fixture
def control_url(cluster):
    return cluster.control_url


@pytest.fixture
def parked_fetch(cluster):
    """Wait until followers' fetches are parked; returns the key that they are watched under."""
    cluster.create_topic("orders", 1, 3)
    deadline = time.monotonic() + TIMEOUT_S
    while not any(purgatory.parked for purgatory in cluster.purgatory()):
        assert time.monotonic() < deadline
    return "orders-0"
