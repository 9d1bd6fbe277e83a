"""Claims about the configuration of a topic and where its values come from."""

import pytest

from broker_sim.config import (
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    BrokerConfig,
    TopicConfig,
    effective_topic_config,
    every_broker_config,
    topic_defaults,
)
from broker_sim.errors import ConfigError


def test_defaults_of_topics_are_those_of_brokers():
    assert topic_defaults(BrokerConfig()) == TopicConfig()


def test_synonym_is_a_broker_config_of_the_same_type():
    of_brokers = every_broker_config()
    for name, synonym in TOPIC_CONFIG_SYNONYMS.items():
        assert TOPIC_CONFIGS[name].type is of_brokers[synonym].type


def test_tiered_storage_has_the_brokers_values_and_cannot_be_enabled():
    static = BrokerConfig.from_mapping({"log.local.retention.ms": "5"})
    dynamic = {"log.remote.copy.lag.bytes": "6"}
    config = effective_topic_config(static, dynamic, {"local.retention.bytes": "7"})
    assert config.local_retention_ms == 5
    assert config.remote_copy_lag_bytes == 6
    assert config.local_retention_bytes == 7
    with pytest.raises(ConfigError, match="Tiered Storage functionality is disabled in the broker"):
        effective_topic_config(static, {}, {"remote.storage.enable": "true"})


def test_topic_overrides_dynamic_overrides_static_overrides_default():
    static = BrokerConfig.from_mapping({"message.max.bytes": "3", "log.retention.ms": "3"})
    dynamic = {"message.max.bytes": "2"}
    config = effective_topic_config(static, dynamic, {"max.message.bytes": "1"})
    assert (config.max_message_bytes, config.retention_ms) == (1, 3)
    assert effective_topic_config(static, dynamic, {}).max_message_bytes == 2
    assert effective_topic_config(static, {}, {}).max_message_bytes == 3


def test_minimum_compaction_lag_above_the_maximum_is_refused():
    with pytest.raises(ConfigError, match="conflict topic config setting"):
        effective_topic_config(BrokerConfig(), {}, {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"})


def test_small_segments_need_the_internal_configuration():
    with pytest.raises(ConfigError):
        effective_topic_config(BrokerConfig(), {}, {"segment.bytes": "1000"})
    config = effective_topic_config(BrokerConfig(), {}, {"internal.segment.bytes": "1000"})
    assert (config.segment_size_bytes, config.segment_bytes) == (1000, 1 << 30)
    assert TopicConfig().segment_size_bytes == 1 << 30


def test_cleanup_policy_decides_whether_segments_are_deleted_or_compacted():
    both = effective_topic_config(BrokerConfig(), {}, {"cleanup.policy": "compact,delete"})
    assert (both.is_compacted, both.is_deleted_by_age) == (True, True)
    assert (TopicConfig().is_compacted, TopicConfig().is_deleted_by_age) == (False, True)


THROTTLED = "leader.replication.throttled.replicas"


@pytest.mark.parametrize("text", ["*", "0:1", " 0:1 , 1:2 ", "", "0:1,", "0:1,0:1"])
def test_lists_of_replicas_that_kafka_takes(text):
    config = effective_topic_config(BrokerConfig(), {}, {THROTTLED: text})
    found = ",".join(config.leader_replication_throttled_replicas)
    assert found == text.replace(" ", "")


@pytest.mark.parametrize("text", ["foo", "0", "0:", "0:1, *", "*, *", "-1:1", ":", "0:a", "0:1:2"])
def test_lists_of_replicas_that_kafka_refuses(text):
    with pytest.raises(ConfigError) as refusal:
        effective_topic_config(BrokerConfig(), {}, {THROTTLED: text})
    assert str(refusal.value) == (
        f"Invalid value [{text}] for configuration {THROTTLED}: {THROTTLED} must be the literal '*' or a"
        " list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )
