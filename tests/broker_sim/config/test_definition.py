"""Claims about single configurations: parsed, checked, and refused in one line."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_sim.config import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    BrokerConfig,
    ConfigType,
    TopicConfig,
    effective_topic_config,
    every_broker_config,
    to_text,
    to_texts,
)
from broker_sim.errors import ConfigError


def test_definition_has_an_attribute_a_default_and_a_meaning():
    for definitions, config in ((BROKER_CONFIGS, BrokerConfig()), (TOPIC_CONFIGS, TopicConfig())):
        for name, definition in definitions.items():
            assert definition.name == name
            assert getattr(config, definition.attribute) == definition.default
            assert definition.doc.endswith(".")


def test_default_is_parsed_from_its_text():
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
        ("compression.type", "brotli", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("log.cleanup.policy", "remove", "String must be one of: compact, delete"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
    ],
)
def test_error_of_a_bad_value_has_name_value_and_allowed_values(name, value, message):
    with pytest.raises(ConfigError) as error:
        BrokerConfig.from_mapping({name: value})
    assert str(error.value) == f"Invalid value {value} for configuration {name}: {message}"


def refusal_of(definition, text):
    """Return the message that refuses the text, None if it is allowed."""
    try:
        definition.parse(text)
    except ConfigError as error:
        return str(error)
    return None


@pytest.mark.parametrize("definition", [*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values()], ids=lambda d: d.name)
def test_every_error_names_the_configuration_the_value_and_allowed_ones(definition):
    allowed = "Not a number of type|Value must be|String must be one of:|Expected value to be|.+ must be"
    for text in ("nonsense", "-3", "-200000", "23", "2", str(1 << 63)):
        refusal = refusal_of(definition, text)
        if refusal is not None:
            # A number of type DOUBLE is shown with its fraction, as by Kafka.
            value = "nonsense" if text == "nonsense" else rf"({text}|{re.escape(str(float(text)))})"
            # A list of replicas is shown as Java shows lists.
            line = rf"Invalid value \[?{value}\]? for configuration {definition.name}: ({allowed}) .+"
            assert re.fullmatch(line, refusal)


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
def test_numbers_and_booleans_are_written_as_kafka_writes_them(name, value, text):
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


def test_minus_one_is_the_default_level_of_gzip():
    assert BrokerConfig.from_mapping({"compression.gzip.level": "-1"}).compression_gzip_level == -1


def test_list_drops_duplicates_and_may_be_empty():
    config = BrokerConfig.from_mapping({"log.cleanup.policy": "delete,compact,delete"})
    assert config.log_cleanup_policy == ("delete", "compact")
    assert BrokerConfig.from_mapping({"log.cleanup.policy": ""}).log_cleanup_policy == ()


def test_unknown_name_is_refused_with_a_similar_one():
    with pytest.raises(ConfigError) as error:
        BrokerConfig.from_mapping({"replica.lag.max.time.ms": "1"})
    assert str(error.value) == (
        "Unknown broker config name: replica.lag.max.time.ms (did you mean replica.lag.time.max.ms?)"
    )
    with pytest.raises(ConfigError, match=r"^Unknown topic config name: zzz$"):
        effective_topic_config(BrokerConfig(), {}, {"zzz": "1"})


@settings(deadline=None)
@given(st.sampled_from([*sorted(BROKER_CONFIGS), "no.such.name\n"]), st.text(max_size=20))
def test_any_text_is_accepted_or_refused_in_one_line(name, text):
    message = "taken"
    try:
        assert BrokerConfig.from_mapping({name: text}).originals == {name: text}
    except ConfigError as error:
        message = str(error)
    assert len(message.splitlines()) == 1


WORDS = "log.cleanup.policy"
ANY = "ssl.cipher.suites"
NEVER_EMPTY = "group.coordinator.rebalance.protocols"
EMPTY_PART = "Configuration '{}' values must not be empty."
TWICE = "Configuration '{}' values must not be duplicated."
NO_POLICY = "Invalid value x for configuration {}: String must be one of: compact, delete"
NO_PROTOCOLS = "Configuration '{}' must not be empty. Valid values include: [consumer, classic, share, streams]"


@pytest.mark.parametrize(
    ("name", "text", "at_the_start", "while_it_runs"),
    [
        (ANY, "", None, None),
        (ANY, " a , b", None, None),
        (ANY, "a,a", None, TWICE),
        (ANY, ",", EMPTY_PART, TWICE),
        (ANY, "a,", EMPTY_PART, EMPTY_PART),
        (ANY, ",a", EMPTY_PART, EMPTY_PART),
        (ANY, "a,,b", EMPTY_PART, EMPTY_PART),
        (WORDS, "", None, None),
        (WORDS, "x,", NO_POLICY, NO_POLICY),
        (WORDS, ",x", EMPTY_PART, EMPTY_PART),
        (WORDS, "x,x", NO_POLICY, TWICE),
        (WORDS, "delete,x,", NO_POLICY, NO_POLICY),
        (WORDS, "delete,compact,delete", None, TWICE),
        (NEVER_EMPTY, "", NO_PROTOCOLS, NO_PROTOCOLS),
        (NEVER_EMPTY, "classic,classic", None, TWICE),
    ],
)
def test_list_is_refused_as_by_kafka_at_the_start_and_while_a_broker_runs(name, text, at_the_start, while_it_runs):
    definition = every_broker_config()[name]
    for check, message in ((definition.parse, at_the_start), (definition.check_change, while_it_runs)):
        if message is None:
            check(text)
            continue
        with pytest.raises(ConfigError) as refusal:
            check(text)
        assert str(refusal.value) == message.format(name)


def test_empty_list_is_refused_where_kafka_needs_a_value():
    needed = {name for name, definition in every_broker_config().items() if is_refused(definition, "")}
    lists = {name for name in needed if every_broker_config()[name].type is ConfigType.LIST}
    assert lists == {
        *("advertised.listeners", "controller.listener.names", "listeners", "log.dir", "log.dirs", "process.roles"),
        *("group.consumer.assignors", "group.share.assignors", "group.streams.assignors"),
        "group.coordinator.rebalance.protocols",
    }


def is_refused(definition, text):
    try:
        definition.parse(text)
    except ConfigError:
        return True
    return False
