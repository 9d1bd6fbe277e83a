"""What the configurations of a listener say about its logins."""

import pytest

from broker_sim.config import BrokerConfig
from broker_sim.errors import ConfigError
from broker_sim.security.sasl_listener import sasl_listener

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b" password="c";'
PLAIN = {"sasl.enabled.mechanisms": "PLAIN"}


def listener(configs, name="OUTSIDE", users=None):
    return sasl_listener(BrokerConfig.from_mapping(configs), name, users)


def test_users_of_the_jaas_line():
    found = listener({**PLAIN, "listener.name.outside.plain.sasl.jaas.config": JAAS})
    assert found.users.knows("a", "b")
    assert not found.users.knows("a", "c")
    assert not found.users.knows("password", "c")


def test_users_that_are_given_take_the_place_of_those_in_the_line():
    configs = {**PLAIN, "listener.name.outside.plain.sasl.jaas.config": JAAS}
    found = listener(configs, users={"billing": "secret"})
    assert found.users.knows("billing", "secret")
    assert not found.users.knows("a", "b")


def test_one_listener_may_differ():
    configs = {
        **PLAIN,
        "sasl.server.max.receive.size": 1000,
        "listener.name.other.sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN,SCRAM-SHA-512",
        "listener.name.other.sasl.server.max.receive.size": 2000,
    }
    both = [listener(configs, name, users={}) for name in ("OUTSIDE", "OTHER")]
    assert [each.max_receive_bytes for each in both] == [1000, 2000]
    # In the order of Java's hash set, as Kafka tells them.
    mechanisms = [each.mechanisms for each in both]
    assert mechanisms == [("PLAIN",), ("PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256")]


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({}, "the SASL mechanism GSSAPI is not supported; set sasl.enabled.mechanisms to some of PLAIN"),
        ({"sasl.enabled.mechanisms": ""}, "the SASL mechanism none is not supported"),
        (PLAIN, "listener OUTSIDE has no users for PLAIN: pass users="),
        (
            {**PLAIN, "listener.name.outside.plain.sasl.jaas.config": f"{JAAS} secret"},
            "listener.name.outside.plain.sasl.jaas.config: Login module control flag not specified",
        ),
    ],
)
def test_refusals(configs, message):
    with pytest.raises(ConfigError, match=message):
        listener(configs)


@pytest.mark.parametrize("name", ["listener.name.outside.nonsense", "plain.sasl.jaas.config"])
def test_unknown_names_are_refused(name):
    with pytest.raises(ConfigError, match=f"Unknown broker config name: {name}"):
        BrokerConfig.from_mapping({name: "x"})


def test_secrets_are_not_in_the_text_of_a_configuration():
    config = BrokerConfig.from_mapping({"listener.name.a.plain.sasl.jaas.config": JAAS})
    assert "user_a" not in repr(config)
