"""What Kafka 4.3.1 answered to each of these values, validated at a running broker."""

import pytest

from broker_sim.config import (
    check_connection_limits,
    check_listeners,
    check_metric_reporters,
    parse_overrides,
    security_protocols,
)
from broker_sim.config.listeners import check_connections_per_ip
from broker_sim.errors import ConfigError

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "SSL": "SSL", "CONTROLLER": "PLAINTEXT"}
DEFAULT_MAP = "PLAINTEXT:PLAINTEXT,SSL:SSL"
TWO_LISTENERS = {"listeners": "PLAINTEXT://:1,CONTROLLER://:2", "controller.listener.names": "CONTROLLER"}


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({}, {"PLAINTEXT", "SSL"}),
        (TWO_LISTENERS, {"PLAINTEXT", "SSL", "CONTROLLER"}),
        ({**TWO_LISTENERS, "listeners": "SSL://:1,CONTROLLER://:2"}, {"PLAINTEXT", "SSL"}),
        ({**TWO_LISTENERS, "listener.security.protocol.map": "A:SSL"}, {"A"}),
        ({"listener.security.protocol.map": "A:SSL,b:PLAINTEXT,,"}, {"A", "B"}),
        ({"listener.security.protocol.map": ""}, set()),
        ({"listener.security.protocol.map": ","}, set()),
    ],
)
def test_controllers_need_no_protocol_without_a_map_and_secured_listeners(values, names):
    assert security_protocols(values, DEFAULT_MAP).keys() == names


@pytest.mark.parametrize(("text", "length"), [("A", 1), ("A:SSL,,B:SSL", 0), (",A:SSL", 0)])
def test_listener_without_a_protocol_is_refused(text, length):
    with pytest.raises(ConfigError, match=f"^Error parsing .* end -1, length {length}$"):
        security_protocols({"listener.security.protocol.map": text}, DEFAULT_MAP)


@pytest.mark.parametrize(
    "text",
    [
        "PLAINTEXT://:9092",
        "plaintext://127.0.0.1:70000",
        "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "PLAINTEXT://127.0.0.1:5,SSL://[::1]:5",
        "PLAINTEXT://127.0.0.1:5,CONTROLLER://:6",
    ],
)
def test_listeners_that_kafka_takes(text):
    check_listeners([part.strip() for part in text.split(",")], PROTOCOLS, ["PLAINTEXT"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("foo", "from '[foo]': Unable to parse foo to a broker endpoint"),
        ("PLAINTEXT:/127.0.0.1:1", "Unable to parse PLAINTEXT:/127.0.0.1:1 to a broker endpoint"),
        ("PLAINTEXT://h:x", "Unable to parse PLAINTEXT://h:x to a broker endpoint"),
        ("BAD://h:1", "from '[BAD://h:1]': No security protocol defined for listener BAD"),
        (
            "SSL://a:1, SSL://a:2",
            (
                "from '[SSL://a:1, SSL://a:2]': Each listener must have a different name, listeners: "
                "[SSL://a:1, SSL://a:2]"
            ),
        ),
        (
            "SSL://a:1,PLAINTEXT://b:1",
            (
                "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, "
                "listeners: [SSL://a:1, PLAINTEXT://b:1], port: 1"
            ),
        ),
        (
            "SSL://a:1",
            (
                "requirement failed: advertised.listeners listener names must be equal to or a subset of "
                "the ones defined in listeners. Found PLAINTEXT. The valid options based on the current "
                "configuration are SSL"
            ),
        ),
    ],
)
def test_listeners_that_kafka_refuses(text, reason):
    with pytest.raises(ConfigError) as refusal:
        check_listeners([part.strip() for part in text.split(",")], PROTOCOLS, ["PLAINTEXT"])
    assert str(refusal.value).endswith(reason)


@pytest.mark.parametrize(
    "text", ["", "1.2.3.4:5", " 1.2.3.4:5 , no.such.host.invalid: 1 ", "a:5,", ":5", "a:-1", "::1:5", "a:5:6"]
)
def test_overrides_that_kafka_takes(text):
    parse_overrides(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "127.0.0.1",
            ("Error parsing configuration property 'max.connections.per.ip.overrides': begin 0, end -1, length 9"),
        ),
        (
            "a:1,,b:2",
            ("Error parsing configuration property 'max.connections.per.ip.overrides': begin 0, end -1, length 0"),
        ),
        ("a:", 'For input string: ""'),
        ("a:x", 'For input string: "x"'),
        ("a:2147483648", 'For input string: "2147483648"'),
        ("a=:1,b!:2", "max.connections.per.ip.overrides contains invalid addresses : a=,b!"),
    ],
)
def test_overrides_that_kafka_refuses(text, reason):
    with pytest.raises(ConfigError) as refusal:
        parse_overrides(text)
    assert str(refusal.value) == reason


def test_reporters_are_the_one_that_kafka_has():
    own = "org.apache.kafka.common.metrics.JmxReporter"
    for text in ("", own, f" {own} ,{own}"):
        check_metric_reporters(text)
    for text in ("java.lang.String", f"{own},no.such.Class"):
        with pytest.raises(ConfigError, match="DynamicMetricsReporters for configuration Invalid"):
            check_metric_reporters(text)


def test_overrides_are_numbers_by_host():
    assert parse_overrides(" a : 1, ::1:5,,") == {"a": 1, "::1": 5}
    assert parse_overrides("") == {}


def test_no_connections_per_address_need_overrides():
    check_connections_per_ip(0, "127.0.0.1:1")
    check_connections_per_ip(1, "")
    with pytest.raises(ConfigError, match="can be set to zero only if"):
        check_connections_per_ip(0, " ")


@pytest.mark.parametrize("name", ["max.connections", "max.connection.creation.rate"])
def test_other_limits_are_never_zero_nor_those_of_a_listener(name):
    own = f"listener.name.inside.{name}"
    check_connection_limits({name: "1", own: "0"}, ["OUTSIDE"])
    for wrong in ({name: "0"}, {own: "0"}):
        with pytest.raises(ConfigError, match=f"Invalid {name} 0 for configuration Invalid"):
            check_connection_limits(wrong, ["INSIDE"])
