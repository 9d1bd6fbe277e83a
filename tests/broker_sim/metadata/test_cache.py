"""Lookups of broker 1 in its newest metadata."""

import pytest

from broker_sim.config import BrokerConfig
from broker_sim.metadata import BrokerState, MetadataDelta, MetadataImage, PartitionState, TopicState
from broker_sim.metadata.cache import MetadataCache
from broker_sim.metadata.topic_partition import TopicPartition

TOPIC_ID = b"t" * 16
KEY = TopicPartition("t", 0)


def broker(broker_id, **fields):
    return BrokerState(broker_id, (), None, **{"epoch": 5, "fenced": False, **fields})


def partition(*replicas):
    return PartitionState(replicas, replicas, replicas[0], leader_epoch=0, partition_epoch=0)


@pytest.fixture
def cache():
    delta = MetadataDelta(MetadataImage(0, "cluster"))
    delta.set_broker(broker(1))
    delta.set_broker(broker(2))
    delta.set_broker(broker(3, fenced=True))
    delta.set_broker(broker(4, in_controlled_shutdown=True))
    topic = TopicState("t", TOPIC_ID, (partition(1, 2), partition(2, 3)), {"segment.ms": "7000"})
    delta.set_topic(topic)
    return MetadataCache(1, BrokerConfig(), delta.apply())


def test_partition_on_any_broker_is_known(cache):
    assert cache.is_known(KEY)
    assert cache.is_known(TopicPartition("t", 1))
    assert not cache.is_known(TopicPartition("t", 2))
    assert not cache.is_known(TopicPartition("u", 0))


def test_hosted_partition_has_local_replica_and_same_topic_id(cache):
    assert cache.is_hosted(KEY, TOPIC_ID)
    assert not cache.is_hosted(KEY, b"x" * 16)
    assert not cache.is_hosted(TopicPartition("t", 1), TOPIC_ID)
    assert not cache.is_hosted(TopicPartition("t", 2), TOPIC_ID)
    assert not cache.is_hosted(TopicPartition("u", 0), TOPIC_ID)


@pytest.mark.parametrize(("broker_id", "is_alive"), [(2, True), (3, False), (4, True), (9, False)])
def test_unfenced_broker_is_alive(cache, broker_id, is_alive):
    assert cache.is_alive(broker_id) is is_alive


@pytest.mark.parametrize(
    ("broker_id", "stored_epoch", "is_eligible"),
    [(2, 5, True), (2, -1, True), (2, 4, False), (2, None, False), (3, 5, False), (4, 5, False), (9, 5, False)],
)
def test_active_broker_in_its_epoch_may_join_an_isr(cache, broker_id, stored_epoch, is_eligible):
    assert cache.is_isr_eligible(broker_id, stored_epoch) is is_eligible


@pytest.mark.parametrize(
    ("broker_id", "epoch", "is_stale"),
    [(2, 4, True), (2, 5, False), (2, 6, False), (2, -1, False), (3, 4, False), (9, 4, False)],
)
def test_epoch_before_the_last_registration_is_stale(cache, broker_id, epoch, is_stale):
    assert cache.is_stale_epoch(broker_id, epoch) is is_stale


def test_topic_config_overrides_dynamic_broker_and_cluster_configs(cache):
    image = cache.image
    configs = {
        "": {"log.retention.ms": "1", "log.segment.bytes": "2000000"},
        "1": {"log.retention.ms": "2", "log.roll.ms": "3"},
        "2": {"log.retention.ms": "4"},
    }
    cache.image = MetadataImage(1, "cluster", image.brokers, image.topics, image.topic_names, configs)
    config = cache.topic_config(cache.image.topics["t"])
    assert (config.segment_ms, config.retention_ms, config.segment_bytes) == (7_000, 2, 2_000_000)
