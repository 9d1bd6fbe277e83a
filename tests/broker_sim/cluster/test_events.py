"""What a cluster logs at the level info: what Kafka's own log would say, in virtual time."""

import logging

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.controller import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType
from broker_sim.controller.requests import NewPartitions
from broker_sim.runtime.event_log import EVENT_ATTRIBUTE

SESSION_MS = 9_000


@pytest.fixture
def records():
    """Return the records of the test and its fixtures; caplog has those of one at a time."""
    seen = []
    handler = logging.Handler()
    handler.emit = seen.append
    logger = logging.getLogger("broker_sim")
    logger.addHandler(handler)
    logger.setLevel("INFO")
    yield seen
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(handler)


@pytest.fixture
def events(records):
    """Return a function that returns the values of the events of that name so far."""

    def of(name):
        said = [getattr(record, EVENT_ATTRIBUTE) for record in records]
        return [event for event in said if event["event"] == name]

    return of


@pytest.fixture
def cluster(events):
    made = VirtualCluster(3)
    made.create_topic("orders", assignments={0: [1, 2, 3]})
    return made


def wait(cluster, ms):
    end_ms = cluster.now_ms + ms
    cluster.run_until(lambda: cluster.now_ms >= end_ms, ms + 1_000)


def test_brokers_register_and_start(cluster, events):
    assert [event["broker"] for event in events("broker_registered")] == [1, 2, 3]
    assert [event["broker"] for event in events("broker_unfenced")] == [1, 2, 3]
    assert [event["node"] for event in events("broker_started")] == ["broker-1", "broker-2", "broker-3"]


def test_topic_is_created_grows_and_is_deleted(cluster, events):
    (created,) = events("topic_created")
    assert (created["topic"], created["partitions"], created["replication_factor"]) == ("orders", 1, 3)
    assert created["node"] == "controller"
    cluster.nodes.controller.create_partitions([NewPartitions("orders", 3, None)])
    assert [event["partitions"] for event in events("partitions_created")] == [3]
    cluster.nodes.controller.delete_topics(["orders"])
    assert [event["topic"] for event in events("topic_deleted")] == ["orders"]
    assert len(events("topic_created")) == 1


def test_leaders_and_followers_start_with_their_epoch(cluster, events):
    (leader,) = events("leader_started")
    assert (leader["node"], leader["partition"]) == ("broker-1", "orders-0")
    assert (leader["leader_epoch"], leader["isr"]) == (0, [1, 2, 3])
    followers = events("follower_started")
    assert {event["node"] for event in followers} == {"broker-2", "broker-3"}
    assert {event["leader"] for event in followers} == {1}


def test_killed_leader_is_fenced_and_another_is_elected_in_virtual_time(cluster, events, records):
    killed_s = records[-1].created
    cluster.kill(1)
    wait(cluster, 2 * SESSION_MS)
    assert [event["broker"] for event in events("broker_killed")] == [1]
    assert [event["broker"] for event in events("broker_fenced")] == [1]
    (elected,) = events("leader_elected")
    assert (elected["previous_leader"], elected["leader"]) == (1, 2)
    assert (elected["leader_epoch"], elected["unclean"]) == (1, False)
    (fenced,) = [one for one in records if one.getMessage().startswith("broker_fenced")]
    assert SESSION_MS <= (fenced.created - killed_s) * 1_000 <= 2 * SESSION_MS


def test_leader_logs_that_its_isr_shrinks_and_expands(cluster, events):
    cluster.nodes.isolate(3)
    wait(cluster, 40_000)
    (shrunk,) = events("isr_shrunk")
    assert (shrunk["node"], shrunk["partition"]) == ("broker-1", "orders-0")
    assert (shrunk["previous_isr"], shrunk["isr"]) == ([1, 2, 3], [1, 2])
    cluster.nodes.isolate(3, drop=False)
    wait(cluster, 40_000)
    (expanded,) = events("isr_expanded")
    assert (expanded["previous_isr"], expanded["isr"]) == ([1, 2], [1, 2, 3])


def test_slow_follower_leaves_the_isr_by_its_leader(events):
    cluster = VirtualCluster(2, configs={"replica.lag.time.max.ms": 2_000})
    cluster.create_topic("orders", assignments={0: [1, 2]})
    cluster.nodes.set_link(2, 1, drop=True, delay_ms=0)
    wait(cluster, 8_000)
    assert [event["isr"] for event in events("isr_shrunk")] == [[1]]
    assert events("broker_fenced") == []


def test_partition_without_a_leader_is_logged(events):
    cluster = VirtualCluster(2)
    cluster.create_topic("orders", assignments={0: [2]})
    cluster.kill(2)
    wait(cluster, 2 * SESSION_MS)
    assert [event["partition"] for event in events("partition_offline")] == ["orders-0"]


def test_changed_configurations_are_logged(cluster, events):
    for resource_type, name, config in (
        (ConfigResourceType.TOPIC, "orders", "retention.ms"),
        (ConfigResourceType.BROKER, "", "log.retention.ms"),
    ):
        change = ConfigAlteration(config, AlterOp.SET, "5000")
        resource = ConfigResource(resource_type, name)
        cluster.nodes.controller.incremental_alter_configs([(resource, [change])])
    (topic,) = events("topic_configured")
    assert (topic["topic"], topic["configs"]) == ("orders", {"retention.ms": "5000"})
    (brokers,) = events("brokers_configured")
    assert brokers["configs"]["all brokers"]["log.retention.ms"] == "5000"


def test_stopped_broker_logs_that_it_shuts_down(cluster, events):
    cluster.stop(1)
    assert [event["broker"] for event in events("broker_shutting_down")] == [1]
    assert [event["node"] for event in events("broker_shut_down")] == ["broker-1"]
