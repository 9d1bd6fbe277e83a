"""A cluster whose clients log in, by every mechanism that is served."""

import pytest

from broker_sim import Cluster

USERS = {"billing": 'se"cr,e=t', "audit": "pässwörd"}


@pytest.fixture(scope="session")
def cluster():
    configs = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1}
    with Cluster(1, security="sasl_plaintext", users=USERS, configs=configs, topics=["t:1:1"]) as running:
        yield running


@pytest.fixture(params=["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def mechanism(request):
    return request.param


@pytest.fixture(scope="session", params=["ssl", "sasl_ssl", "certificates"])
def encrypted(request):
    """A cluster with TLS alone, with logins too, and one that asks clients for certificates."""
    configs = {"offsets.topic.num.partitions": 1}
    security, users = request.param, None
    if request.param == "sasl_ssl":
        users = {"billing": "secret"}
    elif request.param == "certificates":
        security = "ssl"
        configs["ssl.client.auth"] = "required"
    with Cluster(1, security=security, users=users, configs=configs, topics=["t:1:1"]) as running:
        yield running


@pytest.fixture(scope="session")
def with_tokens():
    """A cluster whose clients bring tokens that nobody has signed."""
    configs = {"sasl.enabled.mechanisms": "OAUTHBEARER", "offsets.topic.num.partitions": 1}
    with Cluster(1, security="sasl_plaintext", configs=configs, topics=["t:1:1"]) as running:
        yield running
