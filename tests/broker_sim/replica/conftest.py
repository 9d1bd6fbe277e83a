"""A virtual cluster of three brokers with one topic, led by broker 1, and a client."""

import pytest

from broker_sim.cluster.requests import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    fetch_request,
    produce_request,
)
from broker_sim.cluster.virtual_cluster import VirtualCluster
from broker_sim.metadata.topic_partition import TopicPartition

TOPIC = "topic"
KEY = (TOPIC, 0)
LEADER, FIRST_FOLLOWER, SECOND_FOLLOWER = 1, 2, 3


class Bench:
    """Says what the tests do in words; all of it in virtual time."""

    def __init__(self, configs=None, topic_configs=None, partitions=1):
        self.cluster = VirtualCluster(
            seed=11, configs={"replica.lag.time.max.ms": "10000", **(configs or {})}
        )
        self.cluster.create_topic(
            TOPIC,
            configs=topic_configs,
            assignments={n: [LEADER, FIRST_FOLLOWER, SECOND_FOLLOWER] for n in range(partitions)},
        )
        self.client = self.cluster.client()
        self.leader_id = LEADER
        self.key = KEY

    def produce(self, *keys, broker=LEADER, client=None, **options):
        request = produce_request(*(keys or (KEY,)), **options)
        return (client or self.client).send(broker, request, PRODUCE_VERSION)

    def fetch(self, *keys, broker=LEADER, client=None, version=FETCH_VERSION, **options):
        request = fetch_request(*(keys or (KEY,)), **options)
        return (client or self.client).send(broker, request, version)

    def settle(self):
        """Let what is due now happen."""
        self.cluster.advance(0)

    def wait(self, pending, timeout_ms=120_000):
        self.cluster.run_until(lambda: pending.done, timeout_ms)
        return pending

    def produced(self, **options):
        """Produce, wait, and return the answer of the one partition."""
        return self.partition_answer(self.wait(self.produce(**options)))

    @staticmethod
    def partition_answer(pending, index=0):
        response = pending.response
        if hasattr(response.responses[0], "partition_responses"):
            return response.responses[index].partition_responses[0]
        return response.responses[index].partitions[0]

    def partition(self, broker=LEADER, number=0):
        manager = self.cluster.nodes.brokers[broker].replica_manager
        return manager.partitions[TopicPartition(TOPIC, number)]

    def isr(self, number=0):
        return set(self.cluster.nodes.controller.image.topics[TOPIC].partitions[number].isr)

    def leader(self, number=0):
        return self.cluster.nodes.controller.image.topics[TOPIC].partitions[number].leader

    def parked(self, name, broker=LEADER):
        purgatories = self.cluster.nodes.brokers[broker].purgatories
        return getattr(purgatories, name).num_delayed()


@pytest.fixture
def make_bench():
    return Bench


@pytest.fixture
def bench():
    return Bench()
