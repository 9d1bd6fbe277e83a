"""Tests of replication throttling (KIP-73)."""

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import BrokerConfig
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.quota import ReplicationQuotas

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"
BROKER = 1


@pytest.fixture
def clock():
    return VirtualClock()


def quotas_of(clock, replicas=None, **configs):
    topics = {"t": replicas or {}}
    config = BrokerConfig(**configs)
    return ReplicationQuotas(config, clock, BROKER, lambda topic: topics.get(topic, {}))


def throttled(manager, topic="t"):
    return [number for number in range(4) if manager.is_throttled(TopicPartition(topic, number))]


@pytest.mark.parametrize(
    ("text", "partitions"),
    [("", []), ("*", [0, 1, 2, 3]), ("0:1", [0]), (" 0:1 , 3:1,2:2,1:10", [0, 3]), ("0:2", []), ("0:1,,", [0])],
)
def test_throttled_replicas_are_this_brokers_in_the_list(clock, text, partitions):
    quotas = quotas_of(clock, {LEADERS: text})
    assert throttled(quotas.leader) == partitions
    assert throttled(quotas.follower) == throttled(quotas.leader, "u") == []
    assert throttled(quotas_of(clock, {FOLLOWERS: text}).follower) == partitions


def test_nothing_is_throttled_without_a_limit(clock):
    quotas = quotas_of(clock)
    quotas.leader.record(10**12)
    assert not quotas.leader.is_quota_exceeded()
    quotas.reconfigure({LEADER_RATE: "1000"})  # earlier bytes count
    assert quotas.leader.is_quota_exceeded()
    assert not quotas.follower.is_quota_exceeded()
    quotas.reconfigure({FOLLOWER_RATE: "1000"})
    assert not quotas.leader.is_quota_exceeded()


def test_rate_is_over_at_least_one_sample(clock):
    quotas = quotas_of(clock)
    quotas.reconfigure({LEADER_RATE: "5000"})
    quotas.leader.record(5_000)
    assert not quotas.leader.is_quota_exceeded()
    quotas.leader.record(5_000)
    assert quotas.leader.is_quota_exceeded()
    clock.advance_to(1_999)
    assert quotas.leader.is_quota_exceeded()
    clock.advance_to(2_000)
    assert not quotas.leader.is_quota_exceeded()


def test_bytes_expire_after_the_window(clock):
    quotas = quotas_of(clock, replication_quota_window_num=3, replication_quota_window_size_seconds=2)
    quotas.reconfigure({FOLLOWER_RATE: "0"})
    quotas.follower.record(1)
    clock.advance_to(5_999)
    assert quotas.follower.is_quota_exceeded()
    clock.advance_to(6_000)
    assert not quotas.follower.is_quota_exceeded()
