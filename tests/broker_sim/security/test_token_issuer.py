"""The key with which a cluster signs tokens, as others read it."""

from threading import Event

import pytest

from broker_sim import Cluster, VirtualCluster
from broker_sim.config import BrokerConfig
from broker_sim.errors import WrongStateError
from broker_sim.security.sasl_listener import sasl_listener

HANDLER = "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class"
SIGNED = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    HANDLER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "sasl.oauthbearer.expected.audience": "kafka",
    "sasl.oauthbearer.expected.issuer": "issuer",
}
NOW_MS = 1_800_000_000_000


def test_url_of_a_cluster_serves_another():
    with Cluster(1, security="sasl_plaintext", configs=SIGNED, control=True) as cluster:
        url = f"{cluster.control_url}/jwks"
        token, _ = cluster.client_config("confluent", user="billing")["oauth_cb"]("")
        configs = {**SIGNED, "sasl.oauthbearer.jwks.endpoint.url": url}
        other = sasl_listener(BrokerConfig.from_mapping(configs), "SASL_PLAINTEXT", None)
    assert other.tokens.validate(token, NOW_MS).principal == "billing"


def configs_with_keys_of(cluster):
    return {
        **SIGNED,
        "sasl.oauthbearer.jwks.endpoint.url": f"{cluster.control_url}/jwks",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": 20,
    }


def test_url_is_read_again_while_the_brokers_run(caplog, monkeypatch):
    gone = Event()

    def hear(record):
        if "keys_of_tokens_not_read" in record.getMessage():
            gone.set()

    monkeypatch.setattr(caplog.handler, "emit", hear)
    with Cluster(1, security="sasl_plaintext", configs=SIGNED, control=True) as cluster:
        other = Cluster(1, security="sasl_plaintext", configs=configs_with_keys_of(cluster))
    with other:
        assert gone.wait(30)


def test_url_is_outside_of_virtual_time(caplog):
    with Cluster(1, security="sasl_plaintext", configs=SIGNED, control=True) as cluster:
        other = VirtualCluster(1, security="sasl_plaintext", configs=configs_with_keys_of(cluster))
    with other:
        other.advance(1_000)
    assert not caplog.records


def test_only_public_parts_of_the_key_are_published():
    with VirtualCluster(1, security="sasl_plaintext", configs=SIGNED) as cluster:
        (key,) = cluster.key_set().to_json()["keys"]
    assert key.keys() == {"kty", "crv", "alg", "use", "kid", "x", "y"}


def test_cluster_that_signs_nothing_has_no_key():
    with VirtualCluster(1) as cluster, pytest.raises(WrongStateError, match="no listener accepts"):
        cluster.key_set()
