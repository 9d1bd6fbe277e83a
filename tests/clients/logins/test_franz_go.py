"""franz-go logs in by every mechanism, with and without TLS, and by a certificate."""

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
def program(build_go, tmp_path_factory):
    directory = tmp_path_factory.mktemp("franz-go")
    build_go(Path(__file__).parent / "franz_go", directory)
    return directory / "franz-go-login"


def files_of(cluster, directory):
    """Return the files with the authority of the brokers, and with the client's certificate and key."""
    config = cluster.client_config("java", user="billing")
    names = ("truststore.certificates", "keystore.certificate.chain", "keystore.key")
    files = []
    for name in names:
        text = config.get(f"ssl.{name}", "")
        files.append(directory / f"{name}.pem" if text else "")
        if text:
            files[-1].write_text(text)
    return files


def run(program, cluster, mechanism, user, password, files):
    """Produce a record; returns what went wrong."""
    done = subprocess.run(
        [program, cluster.bootstrap_servers, mechanism, user, password, "t", *files],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.stderr


@pytest.fixture(scope="module")
def log_in(cluster, program, tmp_path_factory):
    """Return a function that produces a record, and returns what went wrong."""
    files = files_of(cluster, tmp_path_factory.mktemp("pem"))
    return lambda *login: run(program, cluster, *login, files)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_franz_go(log_in, mechanism, user):
    secret = unsecured_token(user) if mechanism == "OAUTHBEARER" else USERS[user]
    assert log_in(mechanism, user, secret) == ""


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_franz_go_is_told_of_a_wrong_password(log_in, mechanism):
    assert "SASL_AUTHENTICATION_FAILED" in log_in(mechanism, "billing", "wrong")


@pytest.mark.parametrize("has_certificate", [True, False])
def test_franz_go_with_a_certificate_of_its_own(program, tmp_path, has_certificate):
    """The cluster takes nobody without one."""
    configs = {"ssl.client.auth": "required"}
    with Cluster(1, security="ssl", configs=configs, topics=["t:1:1"]) as running:
        authority, *own = files_of(running, tmp_path)
        files = [authority, *(own if has_certificate else ("", ""))]
        assert (run(program, running, "", "", "", files) == "") == has_certificate
