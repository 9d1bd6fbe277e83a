"""franz-go logs in by every mechanism, with and without TLS."""

import subprocess
from pathlib import Path

import pytest

from broker_sim import Cluster
from broker_sim.cluster.listeners.client_config import unsecured_token

pytestmark = pytest.mark.soak(part="clients")

TIMEOUT_S = 60
USERS = {"billing": 'se"cr,e=t', "audit": "pässwörd"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CONFIGS = {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}


@pytest.fixture(scope="module", params=["sasl_plaintext", "sasl_ssl"])
def cluster(request):
    options = {"security": request.param, "users": USERS, "configs": CONFIGS}
    with Cluster(1, topics=["t:1:1"], **options) as running:
        yield running


@pytest.fixture(scope="module")
def log_in(cluster, build_go, tmp_path_factory):
    """Return a function that produces a record, and returns what went wrong."""
    directory = tmp_path_factory.mktemp("franz-go")
    build_go(Path(__file__).parent / "franz_go", directory)
    authority = directory / "ca.pem"
    trusted = cluster.client_config("java", user="billing").get("ssl.truststore.certificates", "")
    authority.write_text(trusted)
    path = str(authority) if trusted else ""

    def run(mechanism, user, password):
        words = (cluster.bootstrap_servers, mechanism, user, password, "t", path)
        done = subprocess.run(
            [directory / "franz-go-login", *words],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return done.stderr

    return run


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_franz_go(log_in, mechanism, user):
    secret = unsecured_token(user) if mechanism == "OAUTHBEARER" else USERS[user]
    assert log_in(mechanism, user, secret) == ""


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_franz_go_is_told_of_a_wrong_password(log_in, mechanism):
    assert "SASL_AUTHENTICATION_FAILED" in log_in(mechanism, "billing", "wrong")
