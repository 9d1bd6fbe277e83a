"""sarama's own functional tests pass against a simulated cluster, which they reach through toxiproxy.

Of the clients whose suites ran once from their repositories, only sarama has its tests in what a registry keeps (the
Go module). The source archive of FastStream 0.7.8 and the npm package of @platformatic/kafka 1.35.0 have none.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from broker_sim import Cluster

pytestmark = pytest.mark.soak(part="clients")

MODULE = "github.com/IBM/sarama@v1.61.1"
TOXIPROXY = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0"
BROKERS = range(1, 6)
FIRST_PORT = 29_090
"""The tests know the addresses 127.0.0.1:29091 to 29095."""
PORTS = [FIRST_PORT + 100 + broker for broker in BROKERS]
CONFIGS = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": 2,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.replication.factor": 2,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.replication.factor": 2,
}
"""Those of the suite's docker-compose.yml, and of Kafka's own server.properties beneath it."""
OTHERS = {
    "TestFuncIdempotentBufferedSequence",
    "TestFuncJavaInteropCooperativeRebalance",
    "TestJavaConsumerCompressionRoundTrip",
    "TestJavaMurmur2PartitionerInterop",
    "TestJavaProducerCompressionRoundTrip",
    "TestReadOnlyAndAllCommittedMessages",
}
"""Tests that need not pass: they run Kafka's shell scripts inside a broker's container; all but the first skip
themselves without one."""
DOCKER = """#!{python}
# Stops and starts brokers of the simulator: `docker compose stop kafka-4`.
import sys, urllib.error, urllib.request
verb, service = sys.argv[2:]
url = "{control}/brokers/" + service.removeprefix("kafka-") + "/" + verb
headers = {{"Content-Type": "application/json"}}
try:
    urllib.request.urlopen(urllib.request.Request(url, b"{{}}", headers))
except urllib.error.HTTPError as error:
    if error.code != 409:  # it is stopped, or runs, already
        raise
"""
TIMEOUT_S = 1_800
START_TIMEOUT_S = 30


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request)


@pytest.fixture
def toxiproxy(find_go, tmp_path):
    """Return the address of a toxiproxy that listens where the tests look for brokers."""
    environment = {**os.environ, "GOBIN": str(tmp_path), "GOFLAGS": "-mod=mod"}
    subprocess.run([find_go(), "install", TOXIPROXY], cwd=tmp_path, env=environment, check=True, timeout=TIMEOUT_S)
    port = FIRST_PORT - 1
    command = [tmp_path / "server", "-host", "127.0.0.1", "-port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def put_between(toxiproxy):
    """Make toxiproxy pass connections on to the brokers, as soon as it serves."""
    deadline = time.monotonic() + START_TIMEOUT_S
    for broker in BROKERS:
        proxy = {"listen": f"127.0.0.1:{FIRST_PORT + broker}", "upstream": f"127.0.0.1:{PORTS[broker - 1]}"}
        while True:
            try:
                post(f"{toxiproxy}/proxies", {"name": f"kafka{broker}", "enabled": True, **proxy})
                break
            except urllib.error.URLError:
                assert time.monotonic() < deadline, "toxiproxy does not serve"
                time.sleep(0.1)


def test_saramas_own_functional_tests_pass(go_module, toxiproxy, tmp_path):
    sources = go_module(MODULE)
    files = [text for path in sources.glob("*_test.go") if "//go:build functional" in (text := path.read_text())]
    names = {name for text in files for name in re.findall(r"^func (Test\w+)\(", text, re.MULTILINE)} - {"TestMain"}
    own = {
        broker: {"broker.rack": str(broker), "advertised.listeners": f"PLAINTEXT://127.0.0.1:{FIRST_PORT + broker}"}
        for broker in BROKERS
    }
    with Cluster(len(BROKERS), configs=CONFIGS, broker_configs=own, ports=PORTS, control=True) as cluster:
        put_between(toxiproxy)
        docker = tmp_path / "bin" / "docker"
        docker.parent.mkdir()
        docker.write_text(DOCKER.format(python=sys.executable, control=cluster.control_url))
        docker.chmod(0o755)
        environment = {"TOXIPROXY_ADDR": toxiproxy, "KAFKA_VERSION": "4.3.1"}
        done = subprocess.run(
            [
                *("go", "test", "-mod=mod", "-tags=functional", "-count=1", "-json", f"-timeout={TIMEOUT_S}s"),
                *("-run", f"^({'|'.join(sorted(names - OTHERS))})$", "."),
            ],
            cwd=sources,
            env={**os.environ, **environment, "PATH": f"{docker.parent}{os.pathsep}{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    passed = {event.get("Test") for event in events if event["Action"] == "pass"}
    assert names - OTHERS - passed == set(), done.stdout
