"""Claims about the configuration of a broker: typed, checked, with Kafka's defaults."""

import re

import pytest

from broker_sim.config import BrokerConfig, applicable, topic_defaults
from broker_sim.errors import ConfigError


def test_values_are_typed_attributes_named_as_in_kafka():
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


def test_unset_values_are_kafkas_defaults():
    config = BrokerConfig.from_mapping({})
    assert config == BrokerConfig()
    assert (config.replica_lag_time_max_ms, config.broker_session_timeout_ms) == (30_000, 9_000)
    assert config.delete_records_purgatory_purge_interval_requests == 1


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
        {"log.cleaner.threads": "0"},
        {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": str(2 << 20)},
        {"queued.max.request.bytes": "100"},
        {"connections.max.idle.ms": "100"},
        {"connections.max.idle.ms": "0"},
        {"connection.failed.authentication.delay.ms": "600000"},
        {"group.consumer.heartbeat.interval.ms": "4999"},
        {"group.consumer.heartbeat.interval.ms": "15001"},
        {"group.consumer.session.timeout.ms": "44999"},
        {"group.consumer.session.timeout.ms": "60001"},
        {"group.consumer.min.heartbeat.interval.ms": "20000"},
        {"group.consumer.min.session.timeout.ms": "5000", "group.consumer.session.timeout.ms": "5000"},
        {"group.consumer.assignment.interval.ms": "15001"},
        {"group.coordinator.rebalance.protocols": "consumer"},
    ],
)
def test_values_that_contradict_each_other_are_refused_in_one_line(values):
    with pytest.raises(ConfigError) as error:
        BrokerConfig.from_mapping(values)
    assert "\n" not in str(error.value)


def test_node_id_and_broker_id_set_each_other():
    for name in ("node.id", "broker.id"):
        config = BrokerConfig.from_mapping({name: "3"})
        assert (config.node_id, config.broker_id) == (3, 3)


def test_overrides_add_up_in_a_copy():
    first = BrokerConfig.from_mapping({"num.partitions": "2"})
    second = first.with_overrides({"message.max.bytes": "9"})
    assert (second.num_partitions, second.message_max_bytes) == (2, 9)
    assert second.originals == {"num.partitions": "2", "message.max.bytes": "9"}
    assert first.message_max_bytes == 1_048_588


def test_dynamic_values_are_in_effect_and_not_among_the_originals():
    config = BrokerConfig().with_dynamic({"message.max.bytes": "9"})
    assert (config.message_max_bytes, config.originals) == (9, {})


@pytest.mark.parametrize(
    "values",
    [
        {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": str((2 << 20) + 2)},
        {"queued.max.request.bytes": "0"},
        {"queued.max.request.bytes": "104857600"},
        {"connections.max.idle.ms": "-1"},
        {"connections.max.idle.ms": "101"},
    ],
)
def test_values_at_the_limit_are_allowed_together(values):
    BrokerConfig.from_mapping(values)


def test_dynamic_layer_that_contradicts_the_ones_before_is_left_out():
    buffer, threads = {"log.cleaner.dedupe.buffer.size": str(2 << 20)}, {"log.cleaner.threads": "2"}
    assert applicable(BrokerConfig(), buffer, threads) == buffer
    assert applicable(BrokerConfig(), threads, buffer) == threads
    assert applicable(BrokerConfig(), threads, {"log.retention.ms": "7"}) == {**threads, "log.retention.ms": "7"}


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
def test_retention_is_that_of_the_finest_unit_that_is_set(values, retention_ms):
    config = BrokerConfig.from_mapping(values)
    assert config.log_retention_time_ms == retention_ms
    assert topic_defaults(config).retention_ms == retention_ms


def test_roll_and_flush_times_have_several_units():
    config = BrokerConfig.from_mapping(
        {"log.roll.hours": "1", "log.roll.jitter.hours": "2", "log.flush.scheduler.interval.ms": "3"}
    )
    topic = topic_defaults(config)
    assert (topic.segment_ms, topic.segment_jitter_ms, topic.flush_ms) == (3_600_000, 7_200_000, 3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"group.share.session.timeout.ms": 6_000},
            ("group.share.min.session.timeout.ms=45000 must be at most group.share.session.timeout.ms=6000"),
        ),
        (
            {"group.share.heartbeat.interval.ms": 15_001},
            ("group.share.heartbeat.interval.ms=15001 must be at most group.share.max.heartbeat.interval.ms=15000"),
        ),
        (
            {"group.share.min.session.timeout.ms": 5_000, "group.share.session.timeout.ms": 5_000},
            ("group.share.heartbeat.interval.ms=5000 must be less than group.share.session.timeout.ms=5000"),
        ),
        (
            {"group.share.max.share.sessions": 199},
            "group.share.max.size=200 must be at most group.share.max.share.sessions=199",
        ),
    ],
)
def test_share_group_limits_have_to_be_in_order(values, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        BrokerConfig.from_mapping(values)


ASSIGNORS = "org.apache.kafka.coordinator.group"
UNKNOWN = "Invalid value x for configuration {}: Class cannot be found"
REGISTERED = (
    "Invalid value {} for configuration group.consumer.assignors: Assignor name 'range' is already registered by"
    " another configured assignor. Assignor names, whether built-in or custom, must be unique"
)
MISSING = (
    "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : {}"
)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("group.consumer.assignors", "uniform,x", UNKNOWN.format("group.consumer.assignors")),
        ("group.consumer.assignors", f"{ASSIGNORS}.assignor.RangeAssignor,range", REGISTERED.format("range")),
        ("group.share.assignors", "x", UNKNOWN.format("group.share.assignors")),
        ("group.share.assignors", "simple,x", UNKNOWN.format("group.share.assignors")),
        (
            "group.share.assignors",
            f"simple,{ASSIGNORS}.assignor.SimpleAssignor",
            "group.share.assignors must contain exactly one assignor, but found 2",
        ),
        ("group.streams.assignors", "sticky,x", UNKNOWN.format("group.streams.assignors")),
        (
            "group.streams.rack.aware.assignment.tags",
            "a, a",
            "group.streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        ("cordoned.log.dirs", "/a,/c,/d", MISSING.format("/c, /d")),
        ("cordoned.log.dirs", "/a/", MISSING.format("/a/")),
        (
            "cordoned.log.dirs",
            "*,/a",
            "requirement failed: When cordoned.log.dirs is set to *, it must not contain other values",
        ),
    ],
)
def test_list_with_a_part_that_no_broker_has_is_refused_as_by_kafka(name, text, message):
    with pytest.raises(ConfigError) as refusal:
        BrokerConfig.from_mapping({"log.dirs": "/a,/b", name: text})
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("group.consumer.assignors", f"{ASSIGNORS}.assignor.RangeAssignor,uniform"),
        ("group.consumer.assignors", "range,range"),
        ("group.share.assignors", f"{ASSIGNORS}.assignor.SimpleAssignor"),
        ("group.streams.assignors", f"{ASSIGNORS}.streams.assignor.StickyTaskAssignor"),
        ("cordoned.log.dirs", ""),
        ("cordoned.log.dirs", "*"),
        ("cordoned.log.dirs", "/b, /b"),
    ],
)
def test_list_that_a_starting_broker_takes(name, text):
    assert BrokerConfig.from_mapping({"log.dirs": "/a,/b", name: text}).originals[name] == text
