"""Claims about the configurations that are accepted and change nothing.

A configuration has an effect if the simulator reads it outside of `broker_sim/config/`: as an
attribute of a configuration (`config.num_partitions`), by a constant of its name, or through another
value that it changes and that is read.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import broker_sim
from broker_sim.config import (
    BROKER_CONFIGS,
    BROKER_WITHOUT_EFFECT,
    CHANGE_WITHOUT_EFFECT,
    GROUP_CONFIGS,
    REPLICATION_QUOTA_CONFIGS,
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    TOPIC_WITHOUT_EFFECT,
    BrokerConfig,
    TopicConfig,
    UpdateMode,
    effective_topic_config,
    limits_of_group_config,
    other_configs,
    to_text,
    topic_defaults,
    why_without_effect,
)
from broker_sim.errors import ConfigError

ROOT = Path(broker_sim.__file__).parent
IS_A_CONFIG = re.compile(r"(config|_static)$")
"""How everything that holds or returns a configuration is named."""

KINDS = ("consumer", "share", "streams")
READERS_OF_GROUPS = {"of_group", "words_of_group", "_of_broker"}
"""Methods of `GroupSettings` that read `group.KIND.NAME`, by its name."""

READ_BY_NAME = {
    "group.consumer.assignment.interval.ms",
    "group.share.assignment.interval.ms",
    "group.streams.assignment.interval.ms",
}
"""Dynamic configurations that are looked up by their names when they are needed."""

LIMITS_OF_GROUPS = {limit for name in GROUP_CONFIGS for limit in limits_of_group_config(name)}
"""`check_group_configs` and `group_number` look these up; tests/broker_sim/config/test_group_configs.py."""

CHANGED_IN_THE_LOGS = {
    "log.segment.delete.delay.ms",
    "producer.id.expiration.ms",
    "transaction.partition.verification.enable",
}
"""Dynamic configurations that `LogManager.reconfigure` takes over."""

CHANGED_IN_THE_CLEANER = {
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.threads",
}
"""Dynamic configurations that `LogCleaner.reconfigure` takes over."""

CHANGED_IN_THE_QUOTAS = {
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
"""Dynamic configurations that `ConnectionQuotas` and `ReplicationQuotas` take over."""

CHANGED_FOR_DEAD_LETTERS = {
    "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.topic.name.prefix",
}
"""Dynamic configurations that `DeadLetterQueue` reads for each letter."""

CANDIDATES = (
    *("false", "true", "1", "2", "3", "5", "501", "5001", "45001", "2000000", "0.25"),
    *("compact", "gzip", "LogAppendTime", "classic", "disabled", "/x", "required"),
    *("localhost:5", "0:1", "range"),
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "org.apache.kafka.server.share.persister.NoOpStatePersister",
    "org.apache.kafka.server.share.dlq.NoOpShareGroupDLQManager",
)


def last_name(node):
    """Return the name that an expression ends with: `config` of `self.config` and of `config()`."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return getattr(node, "attr", getattr(node, "id", ""))


@cache
def read_names():
    """Return the attributes of configurations that are read, and the names in constants."""
    names = set()
    for path in ROOT.rglob("*.py"):
        if path.parent.name == "config":
            continue
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and IS_A_CONFIG.search(last_name(node.value)):
                names.add(node.attr)
            if isinstance(node, ast.Call) and last_name(node.func) in READERS_OF_GROUPS:
                names |= names_of_kinds(argument.value for argument in node.args if isinstance(argument, ast.Constant))
        for statement in tree.body:
            value = getattr(statement, "value", None)
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                names.add(value.value.replace(".", "_"))
                names |= names_of_kinds([value.value])
    return names


def names_of_kinds(names):
    """Return the attributes of a configuration that `GroupSettings` reads, for each kind of group."""
    texts = [name.replace(".", "_") for name in names if isinstance(name, str)]
    return {f"group_{kind}_{text}" for kind in KINDS for text in texts}


def values_read_of(config):
    """Return what is read of a configuration, its computed values included."""
    values = {name: getattr(config, name, None) for name in read_names()}
    return {name: value for name, value in values.items() if not callable(value)}


def with_another_value(definition, make):
    """Return the configuration that `make` makes of the first text that is allowed and no default."""
    for text in CANDIDATES:
        try:
            if definition.parse(text) != definition.default:
                return make({definition.name: text})
        except ConfigError:
            continue
    raise AssertionError(f"no other value for {definition.name}")


@cache
def values_of_the_default():
    return values_read_of(BrokerConfig()), values_read_of(topic_defaults(BrokerConfig()))


def broker_has_effect(definition):
    default = BrokerConfig()
    changed = with_another_value(definition, lambda values: default.with_overrides(values).replaced(originals={}))
    return (values_read_of(changed), values_read_of(topic_defaults(changed))) != values_of_the_default()


def topic_has_effect(definition):
    if definition.name == "remote.storage.enable":
        return False  # it has no other value
    changed = with_another_value(definition, lambda values: effective_topic_config(BrokerConfig(), {}, values))
    return values_read_of(changed) != values_read_of(TopicConfig())


def test_broker_configs_that_nothing_reads_are_those_of_the_table():
    unread = {n for n, definition in BROKER_CONFIGS.items() if not broker_has_effect(definition)}
    unread -= LIMITS_OF_GROUPS
    assert sorted(unread) == sorted(BROKER_WITHOUT_EFFECT)


def test_dynamic_broker_configs_that_change_no_topics_are_those_of_the_table():
    default = BrokerConfig()
    without_effect = {
        name
        for name, definition in {**BROKER_CONFIGS, **REPLICATION_QUOTA_CONFIGS}.items()
        if definition.update_mode is not UpdateMode.READ_ONLY
        and name not in BROKER_WITHOUT_EFFECT
        and name not in READ_BY_NAME | CHANGED_IN_THE_LOGS | CHANGED_IN_THE_CLEANER
        and name not in CHANGED_IN_THE_QUOTAS | CHANGED_FOR_DEAD_LETTERS
        and values_read_of(topic_defaults(with_another_value(definition, default.with_dynamic)))
        == values_read_of(topic_defaults(default))
    }
    assert without_effect == CHANGE_WITHOUT_EFFECT


def test_topic_configs_that_nothing_reads_are_those_of_the_table():
    unread = {n for n, definition in TOPIC_CONFIGS.items() if not topic_has_effect(definition)}
    assert sorted(unread) == sorted(TOPIC_WITHOUT_EFFECT)


def test_every_broker_config_that_only_sets_a_topics_without_effect_has_its_reason():
    for name in TOPIC_WITHOUT_EFFECT.keys() & TOPIC_CONFIG_SYNONYMS.keys():
        synonym = TOPIC_CONFIG_SYNONYMS[name]
        why = why_without_effect(synonym)
        assert why == TOPIC_WITHOUT_EFFECT[name]


def test_every_config_of_kafka_is_accepted_and_the_others_have_a_reason():
    others = other_configs()
    assert not BROKER_CONFIGS.keys() & others.keys()
    for name, definition in others.items():
        assert why_without_effect(name)
        text = to_text(definition.default)
        if text is not None:
            config = BrokerConfig.from_mapping({name: text})
            assert config.text_of(definition) == text


def test_internal_config_of_kafka_is_accepted_and_never_described():
    internal = {name: definition for name, definition in other_configs().items() if definition.internal}
    assert internal
    for name, definition in internal.items():
        assert BrokerConfig.from_mapping({name: "10" if definition.default is None else definition.default})


@pytest.mark.parametrize(
    ("name", "value"), [("num.io.threads", "0"), ("num.io.threads", "x"), ("ssl.client.auth", "no")]
)
def test_bad_value_of_a_config_without_effect_is_refused(name, value):
    with pytest.raises(ConfigError, match=f"Invalid value {value} for configuration {name}"):
        BrokerConfig.from_mapping({name: value})


def test_persister_of_share_groups_is_one_of_kafkas_or_none():
    kept = "org.apache.kafka.server.share.persister.DefaultStatePersister"
    assert BrokerConfig().group_share_persister_class_name == kept
    for name in ("", kept, "org.apache.kafka.server.share.persister.NoOpStatePersister"):
        config = BrokerConfig.from_mapping({"group.share.persister.class.name": name})
        assert config.group_share_persister_class_name == name
    with pytest.raises(ConfigError, match=r"group\.share\.persister\.class\.name='x' must be one of Kafka's"):
        BrokerConfig.from_mapping({"group.share.persister.class.name": "x"})
