"""The control port: its answers, and the status of what it refuses."""

import asyncio
import json
import re
import socket
import sys
import time
from http.client import HTTPConnection

import pytest

from broker_sim import Cluster, Fault
from broker_sim.control import app
from broker_sim.control.client import ControlClient, ControlError
from broker_sim.control.server import ControlServer
from broker_sim.control.verb import verbs_of

TIMEOUT_S = 60


@pytest.fixture
def ask(control_url):
    """Return a function that sends one request: (status, body), the body decoded if it is JSON."""

    def send(method, path, body=None):
        connection = HTTPConnection(control_url.removeprefix("http://"), timeout=TIMEOUT_S)
        try:
            content = body if isinstance(body, (bytes, type(None))) else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read()
            is_json = response.headers.get_content_type() == "application/json"
            return response.status, json.loads(text) if is_json else text.decode()
        finally:
            connection.close()

    return send


def test_status_is_that_of_the_cluster(ask, cluster):
    cluster.create_topic("orders", 2, 3)
    assert ask("GET", "/status") == (200, cluster.status().to_json())


def test_one_broker_and_one_partition_are_those_of_the_status(ask, cluster):
    cluster.create_topic("orders", 2, 3)
    assert ask("GET", "/brokers/2") == (200, cluster.broker(2).to_json())
    for path, partition in (("/1", 1), ("", 0)):
        status, found = ask("GET", f"/topics/orders/partitions{path}")
        assert (status, found["partition"], len(found["replicas"])) == (200, partition, 3)
    assert ask("GET", "/topics/orders/partitions/2")[0] == 404


@pytest.mark.usefixtures("short_sessions")
def test_verbs_on_brokers_answer_with_the_state_of_the_broker(ask):
    for verb, state in [
        ("pause", "paused"),
        ("resume", "running"),
        ("disconnect", "running"),
        ("reconnect", "running"),
        ("disconnect-clients", "running"),
        ("reconnect-clients", "running"),
        ("kill", "dead"),
        ("start", "running"),
    ]:
        status, broker = ask("POST", f"/brokers/2/{verb}")
        assert (status, broker["id"], broker["state"]) == (200, 2, state)


API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
KILLS = 5
"""Number of kills of which one at least showed an open connection when answers did not wait for its end."""


@pytest.mark.usefixtures("short_sessions")
def test_connections_are_closed_when_a_kill_is_answered(ask, cluster):
    for _ in range(KILLS):
        connections = [socket.create_connection(cluster.address(2)) for _ in range(20)]
        for connection in connections:
            connection.sendall(API_VERSIONS)
            size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
            connection.recv(size, socket.MSG_WAITALL)
        assert ask("POST", "/brokers/2/kill")[0] == 200
        for connection in reversed(connections):
            with connection:
                assert connection.recv(1, socket.MSG_DONTWAIT) == b""
        assert ask("POST", "/brokers/2/start", {"end_session": True})[0] == 200


def test_topic_is_created_with_its_configs(ask, cluster):
    body = {"name": "orders", "partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "5"}}
    status, topic = ask("POST", "/topics", body)
    assert status == 200
    assert [partition["partition"] for partition in topic["partitions"]] == [0, 1]
    assert [topic.name for topic in cluster.status().topics] == ["orders"]


def test_configurations_of_a_topic_may_be_numbers_and_booleans(ask, cluster):
    configs = {"min.insync.replicas": 2, "unclean.leader.election.enable": True, "flush.ms": "7"}
    assert ask("POST", "/topics", {"name": "configured", "configs": configs})[0] == 200
    assert cluster.status().topic("configured").partitions


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("GET", "/nothing", None, 404, "GET /nothing: Not Found"),
        ("POST", "/status", None, 405, "Method Not Allowed"),
        ("POST", "/brokers/9/pause", None, 404, "unknown broker 9; brokers: 1, 2, 3"),
        ("POST", "/brokers/one/pause", None, 400, "broker_id must be a number, not 'one'"),
        ("POST", "/brokers/1/frobnicate", None, 404, "Not Found"),
        ("POST", "/brokers/1/resume", None, 409, "broker 1 is running, not paused"),
        ("POST", "/brokers/1/start", None, 409, "broker 1 is running; kill it first"),
        ("POST", "/brokers/1/pause", {"for_ms": 5}, 400, "unknown fields: for_ms; the verb has: none"),
        ("POST", "/links", b"{", 400, "the body is not JSON"),
        ("POST", "/links", b"\xff", 400, "the body is not JSON"),
        ("POST", "/links", [1], 400, "the body must be a JSON object"),
        ("POST", "/links", {"to": 2}, 400, "'from' is missing: int expected"),
        ("POST", "/links", {"from": "1", "to": 2}, 400, "'from' must be int, not \"1\""),
        ("POST", "/links", {"from": True, "to": 2}, 400, "'from' must be int, not true"),
        ("POST", "/links", {"from": 1, "to": 2, "drop": 1}, 400, "'drop' must be bool, not 1"),
        ("POST", "/links", {"from": 1, "to": 1}, 400, "not from 1 to 1"),
        ("POST", "/links", {"from": 1, "to": 9}, 404, "unknown broker 9"),
        ("POST", "/links", {"from": 1, "to": 2, "delay_ms": -1}, 400, "at least 0, not -1"),
        ("POST", "/topics", {"name": "a b"}, 400, "a b"),
        ("POST", "/inject", {"api": "Produce"}, 400, "needs an error, a loss, a delay_ms or a throttle_ms"),
        ("POST", "/inject", {}, 400, "'api' is missing: the name of an API such as Produce"),
        ("POST", "/inject", {"api": "Nothing", "delay_ms": 1}, 400, "unknown API 'Nothing'"),
        ("POST", "/inject", {"api": "Fetch", "error": "NOTHING"}, 400, "unknown error 'NOTHING'"),
        ("POST", "/groups/shop/wait-for-group", {"state": "stabel"}, 400, "'stabel' (did you mean Stable?); states: "),
        ("POST", "/inject", {"api": "Fetch", "lose": "all"}, 400, "request or response, not 'all'"),
        ("POST", "/inject", {"api": "Fetch", "delay_ms": 1, "broker": 9}, 404, "unknown broker 9"),
        ("POST", "/topics", {"name": "a", "configs": {"b": [1]}}, 400, "texts, numbers or booleans"),
        ("POST", "/topics", {"name": "a", "configs": {"b": 1}}, 400, "topic config name: b"),
    ],
)
def test_invalid_request_is_refused_with_a_reason(ask, method, path, body, status, reason):
    answered, answer = ask(method, path, body)
    assert answered == status
    assert list(answer) == ["error"]
    assert reason in answer["error"]


@pytest.mark.parametrize(
    ("verb", "path", "name", "others"),
    [
        ("wait_until_in_sync", "/wait-until-in-sync", "timeout_s", {}),
        ("wait_for_isr", "/topics/orders/partitions/0/wait-for-isr", "timeout_s", {"size": 9}),
        ("wait_for_group", "/groups/g/wait-for-group", "timeout_s", {}),
        ("set_link", "/links", "delay_ms", {"from": 1, "to": 2}),
        ("delay_metadata", "/delay-metadata", "max_ms", {}),
        ("inject", "/inject", "delay_ms", {"api": "Fetch"}),
        ("inject", "/inject", "throttle_ms", {"api": "Fetch"}),
    ],
)
def test_duration_of_more_than_25_days_is_refused(ask, cluster, verb, path, name, others):
    cluster.create_topic("orders")
    if verb == "wait_until_in_sync":
        cluster.kill(1)
    in_ms = name.endswith("_ms")
    most = 2**31 - 1 if in_ms else (2**31 - 1) / 1_000
    for too_much in (most + 1, 10**18, *(() if in_ms else (1e30,))):
        status, answer = ask("POST", path, {name: too_much, **others})
        assert (status, answer) == (400, {"error": f"{name} must be at most {most}, not {too_much}"})


def test_every_duration_of_a_verb_is_in_the_test_above():
    (tested,) = [
        mark.args[1] for mark in test_duration_of_more_than_25_days_is_refused.pytestmark if mark.name == "parametrize"
    ]
    durations = [
        (verb.name, name)
        for verb in verbs_of(Cluster).values()
        for name in verb.parameters
        if name.endswith(("_ms", "_s")) and name != "timestamp_ms"
    ]
    durations += [("inject", name) for name in Fault.__annotations__ if name.endswith("_ms")]
    assert sorted(durations) == sorted((verb, name) for verb, _, name, _ in tested)


def test_faults_are_injected_shown_and_healed(ask, cluster):
    body = {"api": "Produce", "broker": 1, "topic": "orders", "partition": 0, "count": 3}
    status, fault = ask("POST", "/inject", {**body, "error": "NOT_LEADER_OR_FOLLOWER"})
    assert (status, fault["api"], fault["count"]) == (200, "PRODUCE", 3)
    ask("POST", "/inject", {"api": "FETCH", "delay_ms": 5})
    ask("POST", "/inject", {"api": "Fetch", "lose": "response"})
    assert [fault.id for fault in cluster.status().faults] == [1, 2, 3]
    assert ask("DELETE", "/inject/2")[0] == 200
    assert ask("DELETE", "/inject/2")[0] == 404
    assert ask("DELETE", "/inject/two")[0] == 400
    assert ask("DELETE", "/inject")[1]["faults"] == []
    assert cluster.status().faults == ()


def test_record_without_a_value_is_a_tombstone(ask, cluster):
    cluster.create_topic("orders", 1, 1)
    status, record = ask("POST", "/topics/orders/records", {"key": "k", "value": None})
    assert (status, record["key"], record["value"]) == (200, "k", None)
    assert [(r.key, r.value) for r in cluster.records("orders")] == [(b"k", None)]
    status, answer = ask("POST", "/topics/orders/records", {"key": "k"})
    assert (status, answer) == (400, {"error": "'value' is missing: str expected"})


def test_cluster_with_a_token_answers_only_those_that_bring_it(monkeypatch):
    monkeypatch.delenv("BROKER_SIM_CONTROL_TOKEN", raising=False)
    with Cluster(1, control=True, control_token="secret") as cluster:
        with pytest.raises(ControlError, match="requires its token"):
            ControlClient(cluster.control_url).request("GET", "/status")
        with pytest.raises(ControlError, match="requires its token"):
            ControlClient(cluster.control_url, "other").request("GET", "/status")
        status = ControlClient(cluster.control_url, "secret").request("GET", "/status")
    assert [broker["id"] for broker in status["brokers"]] == [1]


def test_metrics_have_kafkas_names(ask, cluster, parked_fetch):
    status, text = ask("GET", "/metrics")
    assert status == 200
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    leader = cluster.leader("orders")
    label = f'{{broker="{leader}",delayedoperation="Fetch"}}'
    assert float(values[f"kafka_server_delayedoperationpurgatory_numdelayedoperations{label}"]) >= 1
    assert float(values[f"kafka_server_delayedoperationpurgatory_purgatorysize{label}"]) >= 1
    label = f'{{broker="{leader}"}}'
    assert values[f"kafka_server_replicamanager_leadercount{label}"] == "1.0"
    assert values[f"kafka_server_replicamanager_underreplicatedpartitions{label}"] == "0.0"
    assert values[f"kafka_server_replicamanager_isrshrinks_total{label}"] == "0.0"
    assert values["kafka_controller_kafkacontroller_activebrokercount"] == "3.0"
    assert values["kafka_controller_kafkacontroller_preferredreplicaimbalancecount"] == "0.0"
    assert f"kafka_controller_kafkacontroller_timesincelastheartbeatms{label}" in values
    types = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types))


def test_metrics_without_prometheus_client_say_what_to_install(ask, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert ask("GET", "/metrics") == (
        501,
        {"error": "metrics need prometheus-client: pip install 'broker-sim[metrics]'"},
    )


@pytest.mark.parametrize("broker", ["%EF%BC%92", "%D9%A2", "+2", "%202", "2_0", "two", "-2"])
def test_broker_is_named_in_plain_digits(ask, broker):
    status, body = ask("POST", f"/brokers/{broker}/resume")
    assert status == 400
    assert "broker_id must be a number, not" in body["error"]


def test_origin_that_is_there_twice_is_refused(control_url):
    connection = HTTPConnection(control_url.removeprefix("http://"), timeout=TIMEOUT_S)
    try:
        connection.putrequest("POST", "/brokers/2/pause")
        for origin in (control_url, "http://evil.test"):
            connection.putheader("Origin", origin)
        connection.endheaders()
        assert connection.getresponse().status == 400
    finally:
        connection.close()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\n\r\n",
        b"\x16\3\1\2\0\1\0",
        b"GET /status HTTP/1.1\r\nAuthorization: Bearer t0ken\0\r\n\r\n",
        b"GET /status HTTP/1.1\r\nAuthorization Bearer t0ken\r\n\r\n",
        b"GET /t0ken HTTP/none\r\n\r\n",
    ],
)
def test_malformed_http_is_one_line_in_the_log_without_what_was_sent(control_url, caplog, request_bytes):
    host, port = control_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as connection:
        connection.sendall(request_bytes)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(100)
    assert "Traceback" not in caplog.text
    assert caplog.text.count("\n") <= 1
    assert "t0ken" not in caplog.text


def test_requests_on_one_connection_are_answered_in_order(control_url):
    connection = HTTPConnection(control_url.removeprefix("http://"), timeout=TIMEOUT_S)
    try:
        for _ in range(3):
            connection.request("GET", "/status")
            assert connection.getresponse().read()
    finally:
        connection.close()


def test_cluster_ends_soon_while_requests_are_under_way(monkeypatch):
    monkeypatch.setattr(app, "CLOSE_TIMEOUT_S", 0.05)
    with Cluster(1, control=True, topics=["orders"]) as cluster:
        host, port = cluster.control_url.removeprefix("http://").split(":")
        head = f"Host: {host}\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{{"
        half_body = socket.create_connection((host, int(port)))
        half_body.sendall(f"POST /inject HTTP/1.1\r\n{head}".encode())
        waits = socket.create_connection((host, int(port)))
        path = "/topics/orders/partitions/0/wait-for-isr"
        waits.sendall(f'POST {path} HTTP/1.1\r\n{head}"size": 9 }}'.encode())
        ControlClient(cluster.control_url).request("GET", "/status")  # both have been read by now
        begin = time.monotonic()
    assert time.monotonic() - begin < TIMEOUT_S / 4
    for connection in (half_body, waits):
        assert not connection.recv(1)
        connection.close()


@pytest.mark.parametrize(
    ("host", "url_host"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("::", "[::1]")],
)
def test_url_has_an_address_that_programs_of_the_machine_reach(host, url_host):
    async def main():
        control = ControlServer(host=host)
        await control.close()
        return control.url

    assert re.fullmatch(rf"http://{re.escape(url_host)}:\d+", asyncio.run(main()))


def test_port_that_cannot_be_served_is_closed_and_logged_with_the_reason(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "broker_sim.control.app", None)

    async def main():
        control = ControlServer()
        control.serve(cluster=None)
        address = control.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET /status HTTP/1.1\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), TIMEOUT_S)
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        await control.close()
        return control.url

    url = asyncio.run(main())
    (record,) = caplog.records
    assert f"control_port_failed url='{url}'" in record.getMessage()
    assert "import of broker_sim.control.app halted" in record.getMessage()


def test_client_tells_of_a_failure_inside_the_cluster(control_url, monkeypatch):
    def fail(nodes):
        raise AssertionError(nodes)

    monkeypatch.setattr("broker_sim.cluster.status.coordinator_status.groups_status", fail)
    with pytest.raises(ControlError, match=r"the cluster failed \(status 500\); see the stderr"):
        ControlClient(control_url).get("/groups")


def test_foreign_requests_change_nothing_and_are_refused_in_one_line(control_url, cluster):
    host = control_url.removeprefix("http://")
    json_type = {"Content-Type": "application/json"}
    for status, headers, body in (
        (403, {"Host": "evil.test", **json_type}, None),
        (403, {"Origin": "http://evil.test", **json_type}, None),
        (415, {"Content-Type": "text/plain"}, "{}"),
        (415, {}, "{}"),
    ):
        connection = HTTPConnection(host, timeout=TIMEOUT_S)
        connection.request("POST", "/brokers/2/pause", body, headers)
        response = connection.getresponse()
        assert (response.status, list(json.loads(response.read()))) == (status, ["error"])
        connection.close()
    assert cluster.status().broker(2).state == "running"


def test_records_are_produced_and_read(ask, cluster):
    cluster.create_topic("orders", 1, 1)
    status, record = ask("POST", "/topics/orders/records", {"value": "v", "key": "k"})
    assert (status, record["offset"], record["value"], record["key"]) == (200, 0, "v", "k")
    cluster.produce("orders", b"\xff")
    status, answer = ask("GET", "/topics/orders/records")
    assert [record["value"] for record in answer["records"]] == ["v", {"base64": "/w=="}]
    headers = [["trace", "7"], ["trace", None]]
    status, record = ask("POST", "/topics/orders/records", {"value": "v", "headers": headers, "timestamp_ms": 5})
    assert (status, record["headers"], record["timestamp_ms"]) == (200, headers, 5)
    assert ask("POST", "/topics/orders/records/many", {"records": answer["records"]})[0] == 200
    assert [record.value for record in cluster.records("orders")] == [b"v", b"\xff", b"v", b"v", b"\xff"]
    large = [{"value": "x" * 900_000}] * 2
    assert ask("POST", "/topics/orders/records/many", {"records": large})[0] == 200
    assert ask("POST", "/topics/orders/records/many", {"records": [7]})[0] == 400
    assert ask("POST", "/topics/orders/records/many", {})[0] == 400
    assert ask("DELETE", "/topics/orders")[0] == 200
    assert ask("GET", "/topics/orders/records")[0] == 404
    assert ask("DELETE", "/topics/a%2Fb")[0] == 404
