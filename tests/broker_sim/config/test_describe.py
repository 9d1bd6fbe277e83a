"""Claims about what DescribeConfigs tells of configurations."""

import pytest

from broker_sim.config import (
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    BrokerConfig,
    BrokerConfigs,
    ConfigSource,
    ConfigType,
)

CONFIGS = BrokerConfigs(
    BrokerConfig.from_mapping({"message.max.bytes": "5", "log.retention.hours": "3"}),
    {"log.retention.bytes": "9", "min.insync.replicas": "2"},
    {"log.segment.bytes": "2000000"},
)


def topic(name, **own):
    topic_configs = {key.replace("_", "."): value for key, value in own.items()}
    (entry,) = CONFIGS.describe_topic(topic_configs, [name])
    return entry


@pytest.mark.parametrize(
    ("name", "value", "source"),
    [
        ("segment.bytes", "2000000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("retention.bytes", "9", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("max.message.bytes", "5", ConfigSource.STATIC_BROKER_CONFIG),
        ("index.interval.bytes", "4096", ConfigSource.DEFAULT_CONFIG),
    ],
)
def test_topic_config_has_the_value_and_the_source_that_are_in_effect(name, value, source):
    entry = topic(name)
    assert (entry.value, entry.source) == (value, source)
    assert entry.read_only is False
    assert entry.synonyms[0].name == TOPIC_CONFIG_SYNONYMS[name]
    assert entry.is_default is (source is ConfigSource.DEFAULT_CONFIG)


def test_topics_own_value_is_the_first_of_its_synonyms():
    entry = topic("max.message.bytes", max_message_bytes="1")
    assert [(s.name, s.value, int(s.source)) for s in entry.synonyms] == [
        ("max.message.bytes", "1", 1),
        ("message.max.bytes", "5", 4),
        ("message.max.bytes", "1048588", 5),
    ]


def test_value_in_another_unit_is_in_effect_but_no_synonym_as_in_kafka():
    entry = topic("retention.ms")
    assert (entry.value, entry.source) == ("10800000", ConfigSource.DEFAULT_CONFIG)
    assert entry.synonyms == ()


def test_internal_configs_are_left_out():
    names = {entry.name for entry in CONFIGS.describe_topic({})}
    assert names == set(TOPIC_CONFIGS) - {"internal.segment.bytes"}


def test_broker_configs_tell_which_can_be_changed():
    entries = {entry.name: entry for entry in CONFIGS.describe_broker()}
    assert entries["num.partitions"].read_only
    assert not entries["log.retention.ms"].read_only
    assert entries["log.cleanup.policy"].type is ConfigType.LIST
    assert entries["log.cleanup.policy"].value == "delete"
    assert entries["auto.create.topics.enable"].value == "true"
    assert entries["broker.rack"].value is None


def test_cluster_configs_are_the_dynamic_ones_of_all_brokers():
    entries = CONFIGS.describe_cluster()
    assert [(e.name, e.value) for e in sorted(entries, key=lambda e: e.name)] == [
        ("log.retention.bytes", "9"),
        ("min.insync.replicas", "2"),
    ]
    assert {e.source for e in entries} == {ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG}


def test_quotas_of_replication_are_told_where_they_are_set():
    name = "leader.replication.throttled.rate"
    assert not BrokerConfigs(BrokerConfig(), {}, {}).describe_broker([name])
    configs = BrokerConfigs(BrokerConfig(), {name: "100"}, {name: "7"})
    (entry,) = configs.describe_broker([name])
    assert (entry.value, entry.type, entry.read_only) == ("7", ConfigType.LONG, False)
    places = [(synonym.value, synonym.source) for synonym in entry.synonyms]
    of_all = ("100", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    assert places == [("7", ConfigSource.DYNAMIC_BROKER_CONFIG), of_all]
    (entry,) = configs.describe_cluster([name])
    assert [(synonym.value, synonym.source) for synonym in entry.synonyms] == [of_all]
