"""kcat logs in with what `client_config` gives to clients on librdkafka."""

import os
import shutil
import subprocess

import pytest

TIMEOUT_S = 60


@pytest.fixture
def produce():
    """Return a function that produces a line with these configurations, and returns what went wrong."""
    path = shutil.which("kcat")
    if path is None:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up("kcat is missing: apt-get install -y --no-install-recommends kcat")

    def run(config):
        options = [word for name, value in config.items() for word in ("-X", f"{name}={value}")]
        done = subprocess.run(
            [path, "-P", "-t", "t", *options],
            input="kcat\n",
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return done.stderr

    return run


def test_kcat(cluster, mechanism, produce):
    for user in ("billing", "audit"):
        config = cluster.client_config("confluent", user=user, mechanism=mechanism)
        assert produce(config) == ""


def test_kcat_is_told_of_a_wrong_password(cluster, produce):
    config = cluster.client_config("confluent", user="billing") | {"sasl.password": "wrong"}
    assert "Invalid username or password" in produce(config)


def test_kcat_over_tls(encrypted, produce):
    assert produce(encrypted.client_config("confluent")) == ""


def test_kcat_with_a_token(with_tokens, produce):
    assert produce(with_tokens.client_config("confluent", user="billing")) == ""
