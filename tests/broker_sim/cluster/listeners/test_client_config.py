"""What a client is made with, under the names of its library."""

import asyncio

import pytest

from broker_sim.cluster.listeners.client_config import CLIENTS, Login, choose_login, client_config
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.errors import ConfigError
from broker_sim.runtime.virtual import VirtualEventLoop
from broker_sim.security.jaas import parse_jaas
from broker_sim.security.json_web_keys import JsonWebKeys
from broker_sim.security.oauthbearer import UnsecuredTokens
from broker_sim.security.plain import PlainUsers
from broker_sim.security.sasl_listener import SaslListener
from broker_sim.security.signed_tokens import SignedTokens

SERVERS = "127.0.0.1:9092"
LOGIN = Login("PLAIN", "billing", 'se"cr\\et')
TWO = {"billing": "secret", "audit": "other"}


def test_names_of_each_client():
    made = {name: client_config(name, SERVERS, "SASL_PLAINTEXT", LOGIN) for name in CLIENTS}
    assert made["confluent"] == {
        "bootstrap.servers": SERVERS,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "billing",
        "sasl.password": 'se"cr\\et',
    }
    assert made["kafka-python"] == {
        "bootstrap_servers": SERVERS,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "billing",
        "sasl_plain_password": 'se"cr\\et',
    }
    assert made["aiokafka"] == made["kafka-python"]


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-512", "scram.ScramLoginModule")]
)
def test_java_gets_a_jaas_line(mechanism, module):
    login = LOGIN._replace(mechanism=mechanism)
    made = client_config("java", SERVERS, "SASL_PLAINTEXT", login)
    assert (made["security.protocol"], made["sasl.mechanism"]) == ("SASL_PLAINTEXT", mechanism)
    line = parse_jaas(made["sasl.jaas.config"])
    assert line.name == f"org.apache.kafka.common.security.{module}"
    assert line.options == {"username": "billing", "password": 'se"cr\\et'}


@pytest.mark.parametrize("client", CLIENTS)
def test_without_a_login_the_addresses_are_enough(client):
    assert list(client_config(client, SERVERS, "PLAINTEXT", None).values()) == [SERVERS]


def choose(users, user=None, mechanism=None, mechanisms=("SCRAM-SHA-256", "PLAIN")):
    listener = SaslListener(mechanisms, PlainUsers(users), UnsecuredTokens(), {}, 1, 1)
    return choose_login(listener, user, mechanism)


def test_signed_token_is_given_to_clients_that_support_it():
    login = Login("OAUTHBEARER", "billing", "a.b.c")
    made = {client: client_config(client, SERVERS, "SASL_PLAINTEXT", login) for client in ("confluent", "aiokafka")}
    assert made["confluent"]["oauth_cb"]("")[0] == "a.b.c"
    assert "sasl.password" not in made["confluent"]
    assert asyncio.run(made["aiokafka"]["sasl_oauth_token_provider"].token()) == "a.b.c"
    with pytest.raises(ConfigError, match="Java client reads signed tokens only from a file"):
        client_config("java", SERVERS, "SASL_PLAINTEXT", login)
    assert "a.b.c" not in repr(login)


def test_nobody_has_a_token_that_others_sign():
    signed = SignedTokens(JsonWebKeys([]))
    listener = SaslListener(("OAUTHBEARER",), PlainUsers({}), signed, {}, 1, 1)
    with pytest.raises(ConfigError, match="not by the cluster"):
        choose_login(listener, "billing", None)


def test_the_only_user_and_plain_need_not_be_named():
    assert choose({"billing": "secret"}) == ("PLAIN", "billing", "secret")
    assert choose({"a": "b"}, mechanisms=("SCRAM-SHA-512", "SCRAM-SHA-256"))[0] == "SCRAM-SHA-256"
    assert choose(TWO, "audit", "SCRAM-SHA-256") == ("SCRAM-SHA-256", "audit", "other")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "pass user= \\(users of the listener: billing, audit\\)"),
        ({"user": "nobody"}, "unknown user 'nobody'; users: billing, audit"),
        (
            {"user": "audit", "mechanism": "GSSAPI"},
            "mechanism 'GSSAPI' is not enabled on this listener; enabled: PLAIN, SCRAM",
        ),
    ],
)
def test_what_there_is_not_is_refused(options, message):
    with pytest.raises(ConfigError, match=message) as error:
        choose(TWO, **options)
    assert "secret" not in str(error.value)


def test_unknown_client_is_refused():
    with pytest.raises(ConfigError, match="client must be one of confluent, aiokafka, kafka-python"):
        client_config("kafkajs", SERVERS, "PLAINTEXT", None)


def test_passwords_are_in_no_text():
    assert "cr" not in repr(LOGIN)


def test_each_listener_has_its_own():
    configs = {
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    loop = VirtualEventLoop()
    text = "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0"
    cluster = SimulatedCluster(loop, 1, listeners=text, configs=configs, users={"billing": "secret"})
    loop.run_until_complete(cluster.open())
    inside = cluster.client_config("aiokafka")
    assert inside == {"bootstrap_servers": cluster.bootstrap_servers_of("INSIDE")}
    outside = cluster.client_config("aiokafka", listener="outside")
    assert outside["bootstrap_servers"] == cluster.bootstrap_servers_of("OUTSIDE")
    assert outside["sasl_plain_password"] == "secret"
    with pytest.raises(ConfigError, match="unknown listener 'X'; listeners: INSIDE, OUTSIDE"):
        cluster.client_config("aiokafka", listener="X")
    loop.run_until_complete(cluster.close())
    loop.close()
