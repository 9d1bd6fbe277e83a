"""What a scenario does to a cluster is undone at its end; seen on the simulator."""

import socket

import pytest
from broker_sim_integration.clients.admin import brokers_of
from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
from broker_sim_integration.cluster_under_test.running_cluster import BROKERS, simulated_cluster
from broker_sim_integration.scenarios.helpers.broker_configs import QUICK_FENCING
from broker_sim_integration.simulator.command import own_command
from broker_sim_integration.simulator.process import SimulatorProcess

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def running():
    command = own_command().arguments
    with SimulatorProcess(command, brokers=BROKERS, configs=dict(QUICK_FENCING)) as simulator:
        yield simulated_cluster(simulator)


def is_healthy(running):
    with ClusterUnderTest(running, "health") as cluster:
        for broker in cluster.brokers:
            with socket.create_connection(cluster.brokers.address(broker), timeout=10):
                pass
            cluster.wait_until.serving(broker)
        return cluster.metadata.listed_brokers() == set(cluster.brokers)


@pytest.mark.parametrize("fault", ["pause", "kill", "disconnect", "disconnect_clients"])
def test_cluster_is_healthy_after_a_fault_that_the_scenario_left(running, fault):
    with ClusterUnderTest(running, f"left-{fault}") as cluster:
        topic = cluster.topics.create()
        getattr(cluster.faults, fault)(cluster.third)
        assert not cluster.faults.none_now
    assert cluster.faults.none_now
    assert is_healthy(running)
    with ClusterUnderTest(running, f"after-{fault}") as cluster:
        isr = cluster.metadata.describe(topic).isr
        assert isr == set(cluster.brokers)


def test_fault_is_undone_when_the_scenario_fails(running):
    def fail(cluster):
        cluster.faults.kill(cluster.third)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), ClusterUnderTest(running, "failing") as cluster:
        fail(cluster)
    assert is_healthy(running)


def test_what_was_registered_is_called_before_connections_close(running):
    answers = []
    with ClusterUnderTest(running, "registered") as cluster:
        client = cluster.connect(cluster.first)
        cluster.on_close(lambda: answers.append(set(brokers_of(client))))
    assert answers == [set(cluster.brokers)]
    assert client.ended.is_set()


def test_new_topic_is_led_by_the_first_broker_and_served_by_all(running):
    with ClusterUnderTest(running, "topics") as cluster:
        topic = cluster.topics.create(partitions=2)
        for broker in cluster.brokers:
            found = cluster.metadata.describe_all(topic.name, via=broker)
            assert [one.leader for one in found.values()] == [cluster.first] * 2
        assert cluster.topics.created == (topic,)
        cluster.topics.delete(topic)
        cluster.wait_until.unknown(topic.name)
        assert cluster.topics.created == ()
