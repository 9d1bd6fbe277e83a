"""kafka-go's own tests of ACLs, SCRAM credentials and logins pass against a simulated broker."""

import json
import os
import subprocess

import pytest

from broker_sim import Cluster

pytestmark = pytest.mark.soak(part="clients")

MODULE = "github.com/segmentio/kafka-go@v0.4.51"
NAMED = {
    "TestClientCreateACLs",
    "TestClientDeleteACLs",
    "TestClientDescribeACLs",
    "TestAlterUserScramCredentials",
    "TestDescribeUserScramCredentials",
    "TestSASL",
    *(
        f"TestSASL/{mechanism}_{claim}"
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
        for claim in ("success", "failure", "is_reusable")
    ),
}
USERS = {"adminplain": "admin-secret", "adminscram256": "admin-secret-256", "adminscram512": "admin-secret-512"}
"""Users and passwords that the tests bring, for a Kafka from 4.0."""
CONFIGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
ADDRESSES = (
    ("client_test.go", 'TCP("localhost")', 'TCP("{}")', "PLAINTEXT"),
    ("sasl/sasl_test.go", '"localhost:9093"', '"{}"', "SASL_PLAINTEXT"),
)
"""File, the address in it, what takes its place, and the listener."""
TIMEOUT_S = 600


def put_addresses(sources, cluster):
    for name, theirs, ours, listener in ADDRESSES:
        file = sources / name
        text = file.read_text()
        assert theirs in text
        file.chmod(0o644)
        file.write_text(text.replace(theirs, ours.format(cluster.bootstrap_servers_of(listener))))


def test_kafka_gos_own_tests_pass(go_module):
    sources = go_module(MODULE)
    tests = "|".join(sorted(name for name in NAMED if "/" not in name))
    with Cluster(1, users=USERS, configs=CONFIGS, topics=["test-writer-0:1:1"]) as cluster:
        put_addresses(sources, cluster)
        done = subprocess.run(
            ["go", "test", "-mod=mod", "-count=1", "-json", "-run", f"^({tests})$", ".", "./sasl"],
            cwd=sources,
            env={**os.environ, "KAFKA_VERSION": "4.3.1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    passed = {event.get("Test") for event in told if event["Action"] == "pass"}
    assert NAMED - passed == set(), done.stdout
    assert done.returncode == 0, done.stdout
