"""Clusters that tests share, and what is left of a test in them."""

import os

import pytest
from broker_sim_integration.clients.groups import Offset, commit, find_coordinator
from broker_sim_integration.clients.raw_client import RawConnection
from broker_sim_integration.clients.topics import Topic

from broker_sim.errors import ConfigError, WrongStateError
from broker_sim.testing.options import ClusterOptions
from broker_sim.testing.shared_clusters import SimulatedClusters

ONE_BROKER = ClusterOptions(brokers=1, topics=["orders"])


def ignore(_clients):
    """Hear of nothing."""


@pytest.fixture
def clusters():
    with SimulatedClusters() as made:
        yield made


def lent(clusters, **options):
    """Return the cluster that a test with these options gets."""
    with clusters.lend(ClusterOptions(**options), ignore) as cluster:
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
    with clusters.lend(ONE_BROKER, ignore) as cluster:
        commit_an_offset(cluster)
        cluster.create_topic("more")
        assert [group.id for group in cluster.groups()] == ["billing"]
    with clusters.lend(ClusterOptions(brokers=1), ignore) as again:
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
    with (
        SimulatedClusters() as others,
        clusters.lend(ONE_BROKER, ignore) as cluster,
        others.lend(ONE_BROKER, ignore) as other,
    ):
        assert cluster.bootstrap_servers != other.bootstrap_servers
        cluster.produce("orders", "x")
        assert other.records("orders") == ()


def test_cluster_that_cannot_be_reset_is_not_lent_again(clusters):
    lent(clusters, brokers=1)
    with pytest.raises(WrongStateError), clusters.lend(ONE_BROKER, ignore) as broken:
        broken.close()
    assert lent(clusters, brokers=1) is not broken


def test_clusters_are_closed_in_the_end():
    with SimulatedClusters() as clusters:
        cluster = lent(clusters, brokers=1)
        cluster.status()
    with pytest.raises(WrongStateError):
        cluster.status()


def is_refused(address):
    try:
        with RawConnection(*address):
            return False
    except ConnectionRefusedError:
        return True


def test_client_of_a_test_cannot_reach_the_next_one(clusters):
    with clusters.lend(ONE_BROKER, ignore) as cluster:
        former = cluster.address(1)
    with clusters.lend(ONE_BROKER, ignore) as cluster:
        assert cluster.address(1) != former
        assert is_refused(former)
        assert not is_refused(cluster.address(1))


def test_connections_at_the_end_of_a_test_are_reported(clusters):
    reports = []
    with clusters.lend(ONE_BROKER, reports.append) as cluster, RawConnection(*cluster.address(1)) as client:
        find_coordinator(client, "billing")
    with RawConnection(*cluster.address(1)) as client, clusters.lend(ONE_BROKER, reports.append):
        find_coordinator(client, "billing")
    closed, ((left,),) = reports[0], reports[1:]
    assert closed == []
    assert (left.client_id, left.api, left.broker) == ("broker-sim-compare", "FindCoordinator", 1)


def test_client_of_the_session_stays_connected_and_is_not_reported(clusters):
    reports = []
    session = clusters.for_session(ClusterOptions(brokers=1))
    before = session.bootstrap_servers
    host, port = before.split(":")
    with RawConnection(host, int(port)) as stays:
        for _ in range(2):
            with clusters.lend(ONE_BROKER, reports.append) as cluster:
                assert cluster.bootstrap_servers != session.bootstrap_servers == before
                find_coordinator(stays, "billing")
    assert reports == [[], []]


def test_addresses_of_the_session_have_the_protocol_of_the_cluster(clusters):
    login = {"security": "sasl_ssl", "users": {"billing": "secret"}}
    session = clusters.for_session(ClusterOptions(brokers=1, **login))
    config = session.client_config("confluent")
    assert config["bootstrap.servers"] == session.bootstrap_servers
    assert (config["security.protocol"], config["sasl.username"]) == ("SASL_SSL", "billing")


def test_cluster_with_listeners_of_its_own_keeps_its_addresses(clusters):
    configs = {"listeners": "PLAINTEXT://127.0.0.1:0"}
    addresses = []
    for _ in range(2):
        with clusters.lend(ClusterOptions(brokers=1, configs=configs), ignore) as cluster:
            addresses.append(cluster.address(1))
    assert addresses[0] == addresses[1]
    with pytest.raises(ConfigError, match="kafka_session"):
        clusters.for_session(ClusterOptions(brokers=1, configs=configs))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_child_gets_clusters_of_its_own(clusters):
    mine = lent(clusters, brokers=1)
    child = os.fork()
    if not child:
        try:
            with clusters.lend(ONE_BROKER, ignore) as cluster:
                os._exit(0 if cluster is not mine and cluster.produce("orders", "x").offset == 0 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lent(clusters, brokers=1) is mine
