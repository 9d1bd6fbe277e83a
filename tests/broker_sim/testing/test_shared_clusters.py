"""Clusters that tests share, and what is left of a test in them."""

import pytest
from broker_sim_integration.clients.groups import Offset, commit, find_coordinator
from broker_sim_integration.clients.raw_client import RawConnection
from broker_sim_integration.clients.topics import Topic

from broker_sim.errors import WrongStateError
from broker_sim.testing.options import ClusterOptions
from broker_sim.testing.shared_clusters import SimulatedClusters

ONE_BROKER = ClusterOptions(brokers=1, topics=["orders"])


@pytest.fixture
def clusters():
    with SimulatedClusters() as made:
        yield made


def lent(clusters, **options):
    """Return the cluster that a test with these options gets."""
    with clusters.lend(ClusterOptions(**options)) as cluster:
        return cluster


def commit_an_offset(cluster):
    with RawConnection(*cluster.address(1)) as client:
        find_coordinator(client, "billing")
        for _ in range(10_000):  # until the new coordinator has loaded its partition
            answer = commit(client, "billing", Offset(Topic("orders", b"", ()), 0, 0), version=8)
            if answer.message.topics[0].partitions[0].error_code == 0:
                return
    raise AssertionError("the coordinator does not load")


def test_topics_and_groups_of_a_test_are_gone_after_it(clusters):
    with clusters.lend(ONE_BROKER) as cluster:
        commit_an_offset(cluster)
        cluster.create_topic("more")
        assert [group.id for group in cluster.groups()] == ["billing"]
    with clusters.lend(ClusterOptions(brokers=1)) as again:
        assert again is cluster
        assert again.groups() == ()
        assert [topic.name for topic in again.status().topics] == ["__consumer_offsets"]


def test_tests_share_a_cluster_where_brokers_and_configs_are_the_same(clusters):
    wanted = [
        {"brokers": 1},
        {"brokers": 2},
        {"brokers": 1, "configs": {"num.partitions": 2}},
        {"brokers": 1, "configs": {"num.partitions": 2, "log.retention.ms": 1}},
        {"brokers": 1, "security": "sasl_plaintext", "users": {"a": "b"}},
        {"brokers": 1, "security": "sasl_plaintext", "users": {"a": "c"}},
    ]
    first = [lent(clusters, **options) for options in wanted]
    assert len(set(first)) == len(wanted)
    assert [lent(clusters, **options) for options in wanted] == first
    assert lent(clusters, brokers=1, configs={}, topics=["orders"]) is first[0]
    assert lent(clusters, brokers=1, configs={"num.partitions": "2"}) is first[2]


def test_workers_of_xdist_have_clusters_of_their_own(clusters):
    """A worker is a process; here each has its place in this one."""
    with SimulatedClusters() as others, clusters.lend(ONE_BROKER) as cluster, others.lend(ONE_BROKER) as other:
        assert cluster.bootstrap_servers != other.bootstrap_servers
        cluster.produce("orders", "x")
        assert other.records("orders") == ()


def test_cluster_that_cannot_be_reset_is_not_lent_again(clusters):
    lent(clusters, brokers=1)
    with pytest.raises(WrongStateError), clusters.lend(ONE_BROKER) as broken:
        broken.close()
    assert lent(clusters, brokers=1) is not broken


def test_clusters_are_closed_in_the_end():
    with SimulatedClusters() as clusters:
        cluster = lent(clusters, brokers=1)
        cluster.status()
    with pytest.raises(WrongStateError):
        cluster.status()
