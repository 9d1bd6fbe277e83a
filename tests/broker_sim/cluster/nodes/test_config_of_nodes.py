"""Configurations of the brokers of a cluster: which are logged, refused and set."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.controller import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType
from broker_sim.errors import ApiError, ConfigError

EVENT = "configuration_without_effect"


@pytest.fixture
def told(caplog):
    """Return a function that returns the events about configurations without effect."""
    return lambda: [record.getMessage() for record in caplog.records if EVENT in record.getMessage()]


def test_configurations_without_effect_are_logged_once_with_their_names(told):
    VirtualCluster(3, configs={"log.dir": "/logs", "num.partitions": "3", "log.preallocate": "true"})
    (event,) = told()
    assert "['log.dir', 'log.preallocate']" in event
    assert "reasons=['files are not preallocated', 'logs are in memory" in event
    assert "num.partitions" not in event


def test_configuration_of_a_newer_release_is_logged_with_the_release_that_it_needs(told):
    creates = {"errors.deadletterqueue.auto.create.topics.enable": "true"}
    VirtualCluster(1, configs=creates)
    assert told() == []
    VirtualCluster(1, configs=creates, as_version="4.3")
    (event,) = told()
    assert f"names={[*creates]} reasons=['it needs as_version 4.4 or newer']" in event


def test_configurations_with_an_effect_are_not_logged(told):
    VirtualCluster(1, configs={"num.partitions": "3", "node.id": "1"})
    assert told() == []


@pytest.mark.parametrize(("interval_ms", "is_told"), [(1_000, False), (1_001, True)])
def test_heartbeats_that_are_rarer_than_two_in_a_session_are_logged_once(caplog, interval_ms, is_told):
    intervals = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": str(interval_ms)}
    VirtualCluster(3, configs=intervals)
    told = [record for record in caplog.records if "heartbeat_interval" in record.getMessage()]
    assert [record.levelname for record in told] == ["ERROR"] * is_told


def test_topic_configuration_without_effect_is_logged_the_first_time_that_it_is_set(told):
    cluster = VirtualCluster(1)
    for name in ("first", "second"):
        cluster.create_topic(name, 1, 1, configs={"preallocate": "true", "retention.ms": "1"})
    (event,) = told()
    assert "names=['preallocate'] reasons=['files are not preallocated']" in event


def test_refused_topic_configuration_is_not_logged(told):
    with pytest.raises(ApiError):
        VirtualCluster(1).create_topic("topic", 1, 1, configs={"preallocate": "maybe"})
    assert told() == []


def test_each_broker_has_its_number_in_its_configuration():
    cluster = VirtualCluster(2)
    for broker_id, broker in cluster.nodes.brokers.items():
        assert (broker.config.node_id, broker.config.broker_id) == (broker_id, broker_id)


@pytest.mark.parametrize("name", ["node.id", "broker.id"])
def test_node_id_of_another_broker_is_refused_in_one_line(name):
    with pytest.raises(ConfigError) as error:
        VirtualCluster(2, configs={name: "1"})
    assert str(error.value) == (
        "Invalid value 1 for configuration node.id: this broker is 2; the ids begin at first_broker_id"
        " (--first-broker-id)"
    )


@pytest.mark.parametrize("name", ["replica.fetch.wait.max.ms", "replica.fetch.min.bytes", "replica.fetch.backoff.ms"])
def test_virtual_time_advances_when_followers_fetch_without_backoff(name):
    cluster = VirtualCluster(2, configs={name: "0"})
    cluster.create_topic("topic", 1, 2)
    leader = cluster.nodes.controller.image.topics["topic"].partitions[0].leader
    for kill in (False, True):
        if kill:
            cluster.kill(leader)
        end_ms = cluster.now_ms + 1_000
        cluster.run_until(lambda end_ms=end_ms: cluster.now_ms >= end_ms)


def test_topic_configurations_may_be_numbers_and_booleans():
    cluster = VirtualCluster(1)
    configs = {"min.insync.replicas": 2, "unclean.leader.election.enable": True}
    cluster.create_topic("topic", 1, 1, configs=configs)
    assert cluster.nodes.controller.image.topics["topic"].configs == {
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "true",
    }


def test_dynamic_change_without_effect_is_logged(told):
    cluster = VirtualCluster(1)
    change = ConfigAlteration("num.replica.fetchers", AlterOp.SET, "2")
    resource = ConfigResource(ConfigResourceType.BROKER, "")
    cluster.nodes.controller.incremental_alter_configs([(resource, [change])])
    (event,) = told()
    assert "['num.replica.fetchers']" in event
