"""UnregisterBroker, over the wire in virtual time; answers as Kafka 4.3.1 gives them."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.messages import DescribeClusterRequest, UnregisterBrokerRequest


class Brokers:
    """Three brokers; the third one leads `t`."""

    def __init__(self):
        self.cluster = VirtualCluster(seed=5)
        self.cluster.create_topic("t", assignments={0: [3, 1, 2]})
        self.client = self.cluster.client()

    def ask(self, broker, request, version):
        pending = self.client.send(broker, request, version)
        self.cluster.run_until(lambda: pending.done, 60_000)
        return pending.response

    def unregister(self, broker_id, by=1):
        response = self.ask(by, UnregisterBrokerRequest(broker_id), 0)
        return response.error_code, response.error_message

    def listed(self, by=1):
        """Return the brokers, with whether they are fenced."""
        response = self.ask(by, DescribeClusterRequest(include_fenced_brokers=True), 2)
        return {broker.broker_id: broker.is_fenced for broker in response.brokers}

    @property
    def partition(self):
        return self.cluster.nodes.controller.image.partition(TopicPartition("t", 0))


@pytest.fixture
def brokers():
    return Brokers()


@pytest.mark.parametrize("broker_id", [9, -1, 2**31 - 1])
def test_unregistered_broker_id_is_refused(brokers, broker_id):
    told = f"Broker ID {broker_id} is not currently registered"
    assert brokers.unregister(broker_id) == (ErrorCode.BROKER_ID_NOT_REGISTERED, told)
    assert brokers.listed() == {1: False, 2: False, 3: False}


def test_dead_broker_is_forgotten_at_once_and_known_again_when_it_is_started(brokers):
    brokers.cluster.kill(3)
    assert brokers.unregister(3) == (ErrorCode.NONE, "")
    brokers.cluster.advance(10)
    assert brokers.listed() == brokers.listed(by=2) == {1: False, 2: False}
    assert (brokers.partition.leader, set(brokers.partition.isr)) == (1, {1, 2})
    assert brokers.partition.replicas == (3, 1, 2)
    assert brokers.unregister(3)[0] == ErrorCode.BROKER_ID_NOT_REGISTERED
    # Nothing of the old registration makes it wait: no session has to end first.
    brokers.cluster.start(3)
    brokers.cluster.advance(1_000)
    assert brokers.listed() == {1: False, 2: False, 3: False}
    assert set(brokers.partition.isr) == {1, 2, 3}


def test_unregistered_broker_is_not_listed_as_fenced(brokers):
    brokers.cluster.kill(3)
    brokers.cluster.advance(12_000)
    assert brokers.listed() == {1: False, 2: False, 3: True}
    assert brokers.unregister(3, by=2) == (ErrorCode.NONE, "")
    brokers.cluster.advance(10)
    assert brokers.listed() == {1: False, 2: False}


def test_running_broker_stays_unregistered_until_restarted(brokers):
    epoch = brokers.partition.leader_epoch
    assert brokers.unregister(3, by=3) == (ErrorCode.NONE, "")
    brokers.cluster.advance(30_000)
    assert brokers.listed() == brokers.listed(by=3) == {1: False, 2: False}
    assert (brokers.partition.leader, brokers.partition.leader_epoch) == (1, epoch + 1)
    brokers.cluster.kill(3)
    brokers.cluster.start(3)
    brokers.cluster.advance(1_000)
    assert brokers.listed() == {1: False, 2: False, 3: False}
    assert set(brokers.partition.isr) == {1, 2, 3}
