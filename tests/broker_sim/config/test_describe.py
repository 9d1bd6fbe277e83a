"""Claims about what DescribeConfigs tells of configurations."""

import pytest

from broker_sim.config import (
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    BrokerConfig,
    BrokerConfigs,
    ConfigSource,
    ConfigType,
    describe_group,
)
from broker_sim.protocol.release import find_release

CONFIGS = BrokerConfigs(
    BrokerConfig.from_mapping({"message.max.bytes": "5", "log.retention.hours": "3"}),
    {"log.retention.bytes": "9", "min.insync.replicas": "2"},
    {"log.segment.bytes": "2000000"},
    find_release("4.3").is_at_least,
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


def test_entries_of_a_topic_stand_in_the_order_of_kafkas_hash_map():
    names = [entry.name for entry in CONFIGS.describe_topic({"internal.segment.bytes": "100000"})]
    assert names == [
        "internal.segment.bytes",
        "compression.type",
        "remote.log.delete.on.disable",
        "leader.replication.throttled.replicas",
        "remote.storage.enable",
        "min.insync.replicas",
        "segment.jitter.ms",
        "remote.log.copy.disable",
        "local.retention.ms",
        "cleanup.policy",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "compression.lz4.level",
        "segment.bytes",
        "retention.ms",
        "compression.gzip.level",
        "flush.messages",
        "compression.zstd.level",
        "max.compaction.lag.ms",
        "file.delete.delay.ms",
        "max.message.bytes",
        "min.compaction.lag.ms",
        "message.timestamp.type",
        "local.retention.bytes",
        "preallocate",
        "index.interval.bytes",
        "min.cleanable.dirty.ratio",
        "unclean.leader.election.enable",
        "retention.bytes",
        "delete.retention.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "segment.ms",
        "segment.index.bytes",
    ]
    some = ["segment.bytes", "retention.ms", "internal.segment.bytes", "cleanup.policy"]
    entries = CONFIGS.describe_topic({"internal.segment.bytes": "100000"}, some)
    assert [entry.name for entry in entries] == [name for name in names if name in some]


def test_entries_of_a_group_stand_in_the_order_of_kafkas_hash_map():
    assert [entry.name for entry in describe_group(CONFIGS, {})] == [
        "consumer.session.timeout.ms",
        "consumer.assignment.interval.ms",
        "share.auto.offset.reset",
        "share.renew.acknowledge.enable",
        "streams.initial.rebalance.delay.ms",
        "share.session.timeout.ms",
        "streams.assignment.interval.ms",
        "share.heartbeat.interval.ms",
        "streams.heartbeat.interval.ms",
        "share.delivery.count.limit",
        "consumer.heartbeat.interval.ms",
        "share.record.lock.duration.ms",
        "share.assignment.interval.ms",
        "share.isolation.level",
        "streams.session.timeout.ms",
        "share.partition.max.record.locks",
        "streams.num.standby.replicas",
    ]


def test_entries_of_a_cluster_stand_in_the_order_of_kafkas_hash_map():
    values = {
        "listener.name.external.max.connections": "200",
        "other.plugin": "y",
        "message.max.bytes": "1000000",
        "log.segment.bytes": "2000000",
        "listener.name.external.max.connection.creation.rate": "50",
        "follower.replication.throttled.rate": "77",
        "min.insync.replicas": "1",
    }
    entries = BrokerConfigs(BrokerConfig(), values, {}).describe_cluster()
    assert [entry.name for entry in entries] == [
        "log.segment.bytes",
        "message.max.bytes",
        "other.plugin",
        "follower.replication.throttled.rate",
        "min.insync.replicas",
        "listener.name.external.max.connections",
        "listener.name.external.max.connection.creation.rate",
    ]
    assert all(len(entry.synonyms) == 1 for entry in entries)


def of_listener(name):
    values = {
        "listener.name.external.max.connections": "100",
        "listener.name.external.ssl.key.password": "secret",
        "listener.name.external.log.retention.hours": "5",
        "listener.name.external.plugin": "x",
        "internal.segment.bytes": "5",
    }
    of_all = {"listener.name.external.max.connections": "200"}
    (entry,) = BrokerConfigs(BrokerConfig(), of_all, values).describe_broker([name])
    return entry


@pytest.mark.parametrize(
    ("name", "value", "config_type", "synonyms"),
    [
        (
            "listener.name.external.max.connections",
            "100",
            ConfigType.INT,
            [
                "listener.name.external.max.connections=100",
                "listener.name.external.max.connections=200",
                "max.connections=2147483647",
            ],
        ),
        (
            "listener.name.external.log.retention.hours",
            "5",
            ConfigType.INT,
            ["listener.name.external.log.retention.hours=5", "log.retention.hours=168"],
        ),
        (
            "listener.name.external.ssl.key.password",
            None,
            ConfigType.PASSWORD,
            ["listener.name.external.ssl.key.password=None"],
        ),
        ("listener.name.external.plugin", None, ConfigType.UNKNOWN, ["listener.name.external.plugin=None"]),
        ("internal.segment.bytes", None, ConfigType.UNKNOWN, ["internal.segment.bytes=None"]),
    ],
)
def test_config_of_a_listener_is_described_like_that_of_all(name, value, config_type, synonyms):
    entry = of_listener(name)
    assert (entry.value, entry.type) == (value, config_type)
    assert [f"{one.name}={one.value}" for one in entry.synonyms] == synonyms
    assert entry.is_sensitive is (value is None)
    assert entry.read_only


def test_internal_configs_are_left_out():
    names = {entry.name for entry in CONFIGS.describe_topic({})}
    assert names == CONFIGS.of_release(TOPIC_CONFIGS).keys() - {"internal.segment.bytes"}


@pytest.mark.parametrize(
    ("release", "newest", "newer"),
    [
        ("4.0", "group.consumer.session.timeout.ms", "group.streams.max.size"),
        ("4.1", "group.streams.max.size", "config.providers"),
        ("4.2", "config.providers", "cordoned.log.dirs"),
        ("4.3", "cordoned.log.dirs", "max.decompressed.message.bytes"),
    ],
)
def test_a_release_has_what_it_and_older_ones_have_added(release, newest, newer):
    configs = CONFIGS._replace(is_at_least=find_release(release).is_at_least)
    names = {entry.name for entry in configs.describe_broker()}
    assert newest in names
    assert newer not in names
    set_by_a_client = configs._replace(cluster={newer: "1"})
    assert [entry.type for entry in set_by_a_client.describe_broker([newer])] == [ConfigType.UNKNOWN]


def test_group_of_4_4_has_the_first_assignor_of_the_broker_and_internal_configs_once_they_are_set():
    configs = CONFIGS._replace(is_at_least=find_release("4.4").is_at_least)
    entries = {entry.name: entry for entry in describe_group(configs, {"streams.task.offset.interval.ms": "20000"})}
    assignor = entries["streams.assignor.name"]
    assert (assignor.value, assignor.synonyms[0].name) == ("sticky", "group.streams.assignors")
    assert entries["streams.task.offset.interval.ms"].value == "20000"
    assert "streams.num.warmup.replicas" not in entries


DEAD_LETTERS = {
    "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.copy.record.enable",
    "errors.deadletterqueue.group.enable",
    "errors.deadletterqueue.topic.name",
    "errors.deadletterqueue.topic.name.prefix",
}


@pytest.mark.parametrize(("release", "described"), [("4.3", set()), ("4.4", DEAD_LETTERS)])
def test_configs_of_newer_releases_are_described_from_these_on(release, described):
    configs = BrokerConfigs(BrokerConfig(), {}, {}, find_release(release).is_at_least)
    entries = [*configs.describe_topic({}), *configs.describe_broker(), *describe_group(configs, {})]
    assert {entry.name for entry in entries} & DEAD_LETTERS == described


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


def test_replication_quotas_are_described_if_they_are_set():
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
