"""Kafka's metrics of a cluster; the control port's tests have their names and labels."""

import pytest

from broker_sim.cluster.virtual_cluster import VirtualCluster

UNDER_REPLICATED = "kafka_server_replicamanager_underreplicatedpartitions"
LEADERS = "kafka_server_replicamanager_leadercount"
SHRINKS = "kafka_server_replicamanager_isrshrinks_total"
FENCED = "kafka_controller_kafkacontroller_fencedbrokercount"


@pytest.fixture
def cluster():
    made = VirtualCluster(seed=8)
    made.create_topic("orders", assignments={0: [1, 2, 3], 1: [1, 3, 2]})
    return made


@pytest.fixture
def metrics(cluster):
    """Return a function that returns the values by name and labels."""

    def read():
        lines = [line for line in cluster.metrics().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    return read


def test_leader_counts_the_partitions_whose_isr_has_shrunk(cluster, metrics):
    assert metrics()[f'{UNDER_REPLICATED}{{broker="1"}}'] == 0
    cluster.pause(3)
    cluster.run_until(lambda: 3 not in cluster.isr("orders") + cluster.isr("orders", 1))
    cluster.advance(0)  # the leader hears of it
    found = metrics()
    assert found[f'{LEADERS}{{broker="1"}}'] == 2
    assert found[f'{UNDER_REPLICATED}{{broker="1"}}'] == 2
    assert found[FENCED] == 1


def test_dead_broker_has_a_state_and_no_other_metrics(cluster, metrics):
    cluster.kill(2)
    found = metrics()
    of_broker_2 = {name: value for name, value in found.items() if 'broker="2"' in name}
    assert of_broker_2.pop('broker_sim_broker_state{broker="2",state="dead"}') == 1
    assert {name.partition("{")[0] for name in of_broker_2} <= {
        "broker_sim_broker_state",
        "kafka_controller_kafkacontroller_timesincelastheartbeatms",
    }
