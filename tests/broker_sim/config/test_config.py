"""Claims about configurations: typed, checked, defaulted, layered and described."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_sim.config import (
    BROKER_CONFIGS,
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    BrokerConfig,
    BrokerConfigs,
    ConfigSource,
    ConfigType,
    TopicConfig,
    effective_topic_config,
    to_text,
    to_texts,
    topic_defaults,
)
from broker_sim.errors import ConfigError


def test_values_are_typed_attributes_under_kafkas_names():
    config = BrokerConfig.from_mapping(
        {
            "replica.lag.time.max.ms": " 3000 ",
            "auto.create.topics.enable": "FALSE",
            "log.cleanup.policy": "compact, delete",
            "log.cleaner.min.cleanable.ratio": "0.25",
            "compression.type": "lz4",
        }
    )
    assert config.replica_lag_time_max_ms == 3000
    assert config.auto_create_topics_enable is False
    assert config.log_cleanup_policy == ("compact", "delete")
    assert config.log_cleaner_min_cleanable_ratio == 0.25
    assert config.compression_type == "lz4"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("num.partitions", 2, "2"),
        ("log.retention.ms", -1, "-1"),
        ("auto.create.topics.enable", False, "false"),
        ("log.cleaner.min.cleanable.ratio", 0.25, "0.25"),
        ("log.cleaner.min.cleanable.ratio", 1, "1"),
        ("broker.rack", "r1", "r1"),
        ("broker.rack", 1, "1"),
    ],
)
def test_numbers_and_booleans_of_python_stand_for_their_text(name, value, text):
    given = BrokerConfig.from_mapping({name: value})
    assert given == BrokerConfig.from_mapping({name: text})
    assert given.originals == {name: text}
    assert to_texts({name: value}) == {name: text}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num.partitions", 2.0, "Invalid value 2.0 for configuration num.partitions"),
        ("num.partitions", True, "Invalid value true for configuration num.partitions"),
        ("delete.topic.enable", 1, "Invalid value 1 for configuration delete.topic.enable"),
        ("log.dirs", ["/a"], r"Invalid value \['/a'\] for configuration log.dirs"),
        ("broker.rack", None, "Invalid value None for configuration broker.rack"),
    ],
)
def test_value_of_another_type_is_one_line_with_its_name(name, value, message):
    with pytest.raises(ConfigError, match=f"^{message}: (Not a number|Expected value to be) .*$"):
        BrokerConfig.from_mapping({name: value})


def test_what_is_not_given_has_kafkas_default():
    config = BrokerConfig.from_mapping({})
    assert config == BrokerConfig()
    assert (config.replica_lag_time_max_ms, config.broker_session_timeout_ms) == (30_000, 9_000)
    assert config.delete_records_purgatory_purge_interval_requests == 1


def test_every_definition_has_its_attribute_its_default_and_a_meaning():
    for definitions, config in ((BROKER_CONFIGS, BrokerConfig()), (TOPIC_CONFIGS, TopicConfig())):
        for name, definition in definitions.items():
            assert definition.name == name
            assert getattr(config, definition.attribute) == definition.default
            assert definition.doc.endswith(".")


def test_every_default_reads_back_from_its_text():
    for definition in (*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values()):
        text = to_text(definition.default)
        if text is not None:
            assert definition.parse(text) == definition.default


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num.partitions", "0", "Value must be at least 1"),
        ("num.partitions", "x", "Not a number of type INT"),
        ("num.partitions", "1.5", "Not a number of type INT"),
        ("num.partitions", "", "Not a number of type INT"),
        ("num.partitions", "1_000", "Not a number of type INT"),
        ("num.partitions", "2147483648", "Not a number of type INT"),
        ("log.retention.bytes", "9223372036854775808", "Not a number of type LONG"),
        ("offsets.topic.replication.factor", "32768", "Not a number of type SHORT"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "Value must be no more than 1"),
        ("log.cleaner.min.cleanable.ratio", "nan", "Value must be at least 0"),
        ("delete.topic.enable", "yes", "Expected value to be either true or false"),
        (
            "compression.type",
            "brotli",
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        ("log.cleanup.policy", "remove", "String must be one of: compact, delete"),
        (
            "compression.gzip.level",
            "0",
            "Value must be between 1 and 9 or equal to -1",
        ),
    ],
)
def test_a_bad_value_is_one_line_with_name_value_and_what_is_allowed(name, value, message):
    with pytest.raises(ConfigError) as error:
        BrokerConfig.from_mapping({name: value})
    assert str(error.value) == f"Invalid value {value} for configuration {name}: {message}"


def test_minus_one_may_stand_for_the_default_level():
    assert BrokerConfig.from_mapping({"compression.gzip.level": "-1"}).compression_gzip_level == -1


def test_a_list_drops_what_comes_twice_and_may_be_empty():
    config = BrokerConfig.from_mapping({"log.cleanup.policy": "delete,compact,delete"})
    assert config.log_cleanup_policy == ("delete", "compact")
    assert BrokerConfig.from_mapping({"log.cleanup.policy": ""}).log_cleanup_policy == ()


def test_an_unknown_name_is_told_with_the_one_that_may_be_meant():
    with pytest.raises(ConfigError) as error:
        BrokerConfig.from_mapping({"replica.lag.max.time.ms": "1"})
    assert str(error.value) == (
        "Unknown broker config name: replica.lag.max.time.ms"
        " (did you mean replica.lag.time.max.ms?)"
    )
    with pytest.raises(ConfigError, match=r"^Unknown topic config name: zzz$"):
        effective_topic_config(BrokerConfig(), {}, {"zzz": "1"})


@pytest.mark.parametrize(
    "values",
    [
        {"replica.fetch.wait.max.ms": "600", "replica.lag.time.max.ms": "500"},
        {"replica.fetch.wait.max.ms": "600", "replica.socket.timeout.ms": "500"},
        {"log.retention.ms": "0"},
        {"log.roll.ms": "0"},
        {"log.roll.jitter.ms": "-1"},
        {"node.id": "1", "broker.id": "2"},
        {"node.id": "-2"},
    ],
)
def test_what_does_not_fit_together_is_refused(values):
    with pytest.raises(ConfigError) as error:
        BrokerConfig.from_mapping(values)
    assert "\n" not in str(error.value)


def test_node_id_and_broker_id_are_the_same():
    for name in ("node.id", "broker.id"):
        config = BrokerConfig.from_mapping({name: "3"})
        assert (config.node_id, config.broker_id) == (3, 3)


def test_overrides_add_up_and_leave_the_original_alone():
    first = BrokerConfig.from_mapping({"num.partitions": "2"})
    second = first.with_overrides({"message.max.bytes": "9"})
    assert (second.num_partitions, second.message_max_bytes) == (2, 9)
    assert second.originals == {"num.partitions": "2", "message.max.bytes": "9"}
    assert first.message_max_bytes == 1_048_588


def test_dynamic_values_are_in_effect_but_not_original():
    config = BrokerConfig().with_dynamic({"message.max.bytes": "9"})
    assert (config.message_max_bytes, config.originals) == (9, {})


@pytest.mark.parametrize(
    ("values", "retention_ms"),
    [
        ({}, 7 * 24 * 3_600_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-1"}, -1),
    ],
)
def test_the_finest_unit_of_retention_counts(values, retention_ms):
    config = BrokerConfig.from_mapping(values)
    assert config.log_retention_time_ms == retention_ms
    assert topic_defaults(config).retention_ms == retention_ms


def test_rolling_and_flushing_have_units_too():
    config = BrokerConfig.from_mapping(
        {
            "log.roll.hours": "1",
            "log.roll.jitter.hours": "2",
            "log.flush.scheduler.interval.ms": "3",
            "log.dir": "/a",
        }
    )
    topic = topic_defaults(config)
    assert (topic.segment_ms, topic.segment_jitter_ms, topic.flush_ms) == (
        3_600_000,
        7_200_000,
        3,
    )
    assert config.log_directories == ("/a",)
    assert config.with_overrides({"log.dirs": "/b,/c"}).log_directories == ("/b", "/c")


def test_the_defaults_of_topics_are_those_of_brokers():
    assert topic_defaults(BrokerConfig()) == TopicConfig()


def test_each_synonym_is_a_broker_config_of_the_same_type_and_default():
    for name, synonym in TOPIC_CONFIG_SYNONYMS.items():
        assert TOPIC_CONFIGS[name].type is BROKER_CONFIGS[synonym].type


def test_topic_goes_before_dynamic_before_static_before_default():
    static = BrokerConfig.from_mapping({"message.max.bytes": "3", "log.retention.ms": "3"})
    dynamic = {"message.max.bytes": "2"}
    config = effective_topic_config(static, dynamic, {"max.message.bytes": "1"})
    assert (config.max_message_bytes, config.retention_ms) == (1, 3)
    assert effective_topic_config(static, dynamic, {}).max_message_bytes == 2
    assert effective_topic_config(static, {}, {}).max_message_bytes == 3


def test_compaction_lags_must_fit():
    with pytest.raises(ConfigError, match="conflict topic config setting"):
        effective_topic_config(
            BrokerConfig(), {}, {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}
        )


def test_small_segments_are_for_tests_only():
    with pytest.raises(ConfigError):
        effective_topic_config(BrokerConfig(), {}, {"segment.bytes": "1000"})
    config = effective_topic_config(BrokerConfig(), {}, {"internal.segment.bytes": "1000"})
    assert (config.segment_size_bytes, config.segment_bytes) == (1000, 1 << 30)
    assert TopicConfig().segment_size_bytes == 1 << 30


def test_cleanup_policies_are_told_apart():
    both = effective_topic_config(BrokerConfig(), {}, {"cleanup.policy": "compact,delete"})
    assert (both.is_compacted, both.is_deleted_by_age) == (True, True)
    assert (TopicConfig().is_compacted, TopicConfig().is_deleted_by_age) == (False, True)


@settings(deadline=None)
@given(st.sampled_from([*sorted(BROKER_CONFIGS), "no.such.name\n"]), st.text(max_size=20))
def test_any_text_is_taken_or_refused_in_one_line(name, text):
    message = "taken"
    try:
        assert BrokerConfig.from_mapping({name: text}).originals == {name: text}
    except ConfigError as error:
        message = str(error)
    assert len(message.splitlines()) == 1


class TestDescribe:
    configs = BrokerConfigs(
        BrokerConfig.from_mapping({"message.max.bytes": "5", "log.retention.hours": "3"}),
        {"log.retention.bytes": "9", "min.insync.replicas": "2"},
        {"log.segment.bytes": "2000000"},
    )

    def topic(self, name, **own):
        topic_configs = {key.replace("_", "."): value for key, value in own.items()}
        (entry,) = self.configs.describe_topic(topic_configs, [name])
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
    def test_a_topics_value_and_where_it_is_from(self, name, value, source):
        entry = self.topic(name)
        assert (entry.value, entry.source) == (value, source)
        assert entry.read_only is False
        assert entry.synonyms[0].name == TOPIC_CONFIG_SYNONYMS[name]
        assert entry.is_default is (source is ConfigSource.DEFAULT_CONFIG)

    def test_its_own_value_comes_first(self):
        entry = self.topic("max.message.bytes", max_message_bytes="1")
        assert [(s.name, s.value, int(s.source)) for s in entry.synonyms] == [
            ("max.message.bytes", "1", 1),
            ("message.max.bytes", "5", 4),
            ("message.max.bytes", "1048588", 5),
        ]

    def test_a_unit_variant_is_in_effect_but_no_synonym_as_in_kafka(self):
        entry = self.topic("retention.ms")
        assert (entry.value, entry.source) == ("10800000", ConfigSource.DEFAULT_CONFIG)
        assert entry.synonyms == ()

    def test_internal_configs_are_not_shown(self):
        names = {entry.name for entry in self.configs.describe_topic({})}
        assert names == set(TOPIC_CONFIGS) - {"internal.segment.bytes"}

    def test_a_brokers_configs_tell_which_can_be_changed(self):
        entries = {entry.name: entry for entry in self.configs.describe_broker()}
        assert entries["num.partitions"].read_only
        assert not entries["log.retention.ms"].read_only
        assert entries["log.cleanup.policy"].type is ConfigType.LIST
        assert entries["log.cleanup.policy"].value == "delete"
        assert entries["auto.create.topics.enable"].value == "true"
        assert entries["broker.rack"].value is None

    def test_the_clusters_configs_are_those_set_for_all_brokers(self):
        entries = self.configs.describe_cluster()
        assert [(e.name, e.value) for e in sorted(entries, key=lambda e: e.name)] == [
            ("log.retention.bytes", "9"),
            ("min.insync.replicas", "2"),
        ]
        assert {e.source for e in entries} == {ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG}
