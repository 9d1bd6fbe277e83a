"""The Java client logs in with what `client_config` gives, by every mechanism and over TLS."""

import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker_sim import Cluster

pytestmark = pytest.mark.soak(part="clients")

LOGINS, DELEGATION = (Path(__file__).parent / name for name in ("LogIn.java", "Tokens.java"))
TIMEOUT_S = 240
USERS = {"billing": 'se"cr,e\\t'}
TOKENS = {"sasl.enabled.mechanisms": "OAUTHBEARER"}
REAUTHENTICATED = {"connections.max.reauth.ms": 2_000}
CASES = {
    "PLAIN": {"security": "sasl_plaintext", "users": USERS, "configs": REAUTHENTICATED},
    "SCRAM-SHA-256": {"security": "sasl_ssl", "users": USERS},
    "SCRAM-SHA-512": {"security": "sasl_plaintext", "users": USERS},
    "OAUTHBEARER": {"security": "sasl_plaintext", "configs": TOKENS},
    None: {"security": "ssl", "configs": {"ssl.client.auth": "required"}},
}


def as_properties(config):
    escaped = {name: str(value).replace("\\", "\\\\") for name, value in config.items()}
    return "".join(f"{name}={value}\n" for name, value in escaped.items())


def properties_of(cluster, mechanism):
    """Return the text of a file with the configuration of the Java client."""
    config = cluster.client_config("java", mechanism=mechanism)
    return as_properties({name: value.replace("\n", " ") for name, value in config.items()})


@pytest.fixture
def run_java(kafka_class_path):
    """Return a function that runs a program with files and returns what it has printed."""
    class_path = kafka_class_path()

    def run(source, *files):
        done = subprocess.run(
            ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path, str(source)]
            + [str(path) for path in files],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_java_logs_in(tmp_path, run_java):
    files = []
    with ExitStack() as stack:
        for number, (mechanism, options) in enumerate(CASES.items()):
            cluster = stack.enter_context(Cluster(1, topics=["t:1:1"], **options))
            files.append(tmp_path / f"{number}.properties")
            files[-1].write_text(properties_of(cluster, mechanism))
        assert run_java(LOGINS, *files).split() == ["t"] * len(CASES)


@pytest.mark.parametrize("mechanism", CASES)
def test_java_tools_log_in(tmp_path, kafka_class_path, mechanism):
    file = tmp_path / "client.properties"
    with Cluster(1, topics=["t:1:1"], **CASES[mechanism]) as cluster:
        file.write_text(properties_of(cluster, mechanism))
        tool = ("-cp", kafka_class_path("kafka-tools"), "org.apache.kafka.tools.TopicCommand")
        options = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(file))
        done = subprocess.run(
            ["java", "-XX:TieredStopAtLevel=1", *tool, *options, "--list"],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    assert done.stdout.split() == ["t"], done.stderr


def test_java_has_delegation_tokens(tmp_path, run_java):
    configs = {"delegation.token.secret.key": "any", "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"}
    options = {"security": "sasl_plaintext", "users": USERS, "configs": configs}
    with Cluster(1, topics=["t:1:1"], **options) as cluster:
        file = tmp_path / "client.properties"
        file.write_text(as_properties(cluster.client_config("java")))
        printed = run_java(DELEGATION, file).splitlines()
    assert printed == ["User:billing", "true", "true", "[t]", "[]"]
