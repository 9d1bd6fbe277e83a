"""The verbs of a real Kafka of three nodes, in containers or as local processes."""

import json
import uuid
from contextlib import suppress

import pytest
from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.reference.clusters.bootstrap import BootstrapCluster
from broker_sim_integration.reference.clusters.waiting import wait_until
from broker_sim_integration.reference.errors import ReferenceClusterError
from broker_sim_integration.reference.jars import KAFKA_VERSION
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = [pytest.mark.real_kafka, pytest.mark.soak(part="scenarios")]

IMPATIENT_MS = 1_500
BELOW_SESSION_MS = 8_000
"""Acks=all within this time come from all replicas: none has left the ISR by then."""
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 100}


def acks_all_producer(servers, topic, request_timeout_ms):
    """Return a function that produces a value with acks=all and no retries.

    It returns the error code, None for success, and knows the leader from the start.
    """
    producer = Producer(
        {"bootstrap.servers": servers, "acks": "all", "retries": 0, "request.timeout.ms": request_timeout_ms, **QUIET}
    )

    def produce(value):
        outcome = []
        producer.produce(topic, value, on_delivery=lambda *reported: outcome.append(reported))
        assert producer.flush(60) == 0
        error = outcome[0][0]
        return None if error is None else error.code()

    produce("the leader's address is known now")
    return produce


@pytest.fixture
def partition(real_kafka):
    """A partition with a leader and two followers in the ISR; describes itself."""

    class Partition:
        topic = f"reference-{uuid.uuid4().hex[:8]}"

        def __init__(self):
            self.admin = AdminClient({"bootstrap.servers": real_kafka.bootstrap_servers, **QUIET})
            made = self.admin.create_topics([NewTopic(self.topic, 1, 3)])
            made[self.topic].result(30)
            self.wait_for_isr(3)
            self.produce("the followers' fetches hold the partition now")

        def describe(self):
            return self.admin.list_topics(self.topic, timeout=10).topics[self.topic].partitions.get(0)

        def wait_until(self, is_so, what):
            """Return the first description by any broker of which `is_so` holds."""

            def described():
                with suppress(KafkaException):  # the broker that was asked did not answer
                    found = self.describe()
                    if found is not None and found.leader > 0 and is_so(found):
                        return found
                return None

            return wait_until(described, what, timeout_ms=60_000)

        def wait_for_isr(self, size):
            self.wait_until(lambda found: len(found.isrs) == size, f"an ISR of {size}")

        def follower(self):
            leader = self.wait_until(lambda _: True, "a leader").leader
            return next(broker for broker in real_kafka.broker_ids if broker != leader)

        def producer(self, request_timeout_ms=30_000):
            """Return a function that produces a value; see `acks_all_producer`."""
            return acks_all_producer(real_kafka.bootstrap_servers, self.topic, request_timeout_ms)

        def produce(self, value):
            """Produce by a new producer; returns the error code, None for success."""
            return self.producer()(value)

    return Partition()


def test_acks_all_is_answered_by_three_healthy_brokers(partition):
    assert partition.produce("one") is None


def test_a_paused_follower_makes_acks_all_time_out_until_it_is_resumed(real_kafka, partition):
    follower = partition.follower()
    impatient = partition.producer(IMPATIENT_MS)
    real_kafka.pause(follower)
    try:
        assert impatient("two") == KafkaError.REQUEST_TIMED_OUT
    finally:
        real_kafka.resume(follower)
    assert partition.produce("three") is None


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_broker_that_ended_comes_back_with_its_data(real_kafka, partition, end):
    follower = partition.follower()
    starts = real_kafka.broker_log(follower).count("Kafka Server started")
    getattr(real_kafka, end)(follower)
    try:
        with pytest.raises(ReferenceClusterError, match="does not run"):
            getattr(real_kafka, end)(follower)
        real_kafka.wait_for_brokers(set(real_kafka.broker_ids) - {follower})
    finally:
        real_kafka.start(follower)
    with pytest.raises(ReferenceClusterError, match="runs already"):
        real_kafka.start(follower)
    real_kafka.wait_for_brokers(set(real_kafka.broker_ids))
    partition.wait_for_isr(3)
    assert partition.produce("four") is None
    # The storage is formatted on the first start only, so the log has all starts.
    # It serves before it says so.
    wait_until(
        lambda: real_kafka.broker_log(follower).count("Kafka Server started") == starts + 1,
        "one more start in its log",
        timeout_ms=60_000,
    )


def test_disconnected_broker_serves_clients_but_not_other_brokers(real_kafka, partition):
    if Fault.DISCONNECT not in real_kafka.faults:
        pytest.skip(f"a {real_kafka.kind} reference cannot disconnect a broker: start Docker")
    follower = partition.follower()
    everybody = set(real_kafka.broker_ids)
    impatient = partition.producer(IMPATIENT_MS)
    real_kafka.disconnect(follower)
    try:
        assert impatient("five") == KafkaError.REQUEST_TIMED_OUT
        real_kafka.wait_for_brokers(everybody - {follower})
        wait_until(
            lambda: real_kafka.live_brokers(follower) == everybody,
            "it answers clients with what it knew",
            timeout_ms=60_000,
        )
    finally:
        real_kafka.reconnect(follower)
    real_kafka.wait_for_brokers(everybody)
    partition.wait_for_isr(3)
    assert partition.produce("six") is None


def test_broker_disconnected_from_clients_still_replicates(real_kafka, partition):
    if Fault.DISCONNECT_CLIENTS not in real_kafka.faults:
        pytest.skip(f"a {real_kafka.kind} reference cannot disconnect clients: start Docker")
    follower = partition.follower()
    produce = partition.producer(BELOW_SESSION_MS)
    real_kafka.disconnect_clients(follower)
    try:
        assert produce("seven") is None
        assert real_kafka.live_brokers(follower) == frozenset()
    finally:
        real_kafka.reconnect_clients(follower)
    real_kafka.wait_for_brokers(set(real_kafka.broker_ids))


def test_a_description_is_plain_json_and_names_the_version(real_kafka):
    facts = real_kafka.describe()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["reference"] == real_kafka.kind
    assert facts["kafka_version"] == KAFKA_VERSION
    assert facts["brokers"] == 3


def test_address_of_a_reference_serves_as_a_bootstrap_reference(real_kafka):
    with BootstrapCluster(real_kafka.bootstrap_servers) as cluster:
        assert cluster.broker_ids == real_kafka.broker_ids
        assert cluster.address(2) == real_kafka.address(2)
        assert cluster.live_brokers(3) == set(real_kafka.broker_ids)
