"""The page at the control port: who gets it, who may write with it, and what it costs."""

import json
from contextlib import closing
from http.client import HTTPConnection

import pytest

from broker_sim import Cluster
from broker_sim.control.guard import PAGE_TOKEN_HEADER, Guard, RefusedRequestError
from broker_sim.control.page import LONGEST_PERIOD_S, SHORTEST_PERIOD_S, period_s

TIMEOUT_S = 60
JSON = {"Content-Type": "application/json"}


def ask(control_url, method, path, headers=None):
    host = control_url.removeprefix("http://")
    with closing(HTTPConnection(host, timeout=TIMEOUT_S)) as connection:
        connection.request(method, path, None, headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()


def first_events(control_url, count, query=""):
    """Return the first events of the stream."""
    host = control_url.removeprefix("http://")
    with closing(HTTPConnection(host, timeout=TIMEOUT_S)) as connection:
        connection.request("GET", f"/page/stream{query}")
        response = connection.getresponse()
        lines = (line for line in response if line.startswith(b"data: "))
        return [json.loads(next(lines)[len("data: ") :]) for _ in range(count)]


def test_page_is_served_and_no_frame_may_hold_it(control_url):
    status, headers, text = ask(control_url, "GET", "/")
    assert (status, headers.get_content_type()) == (200, "text/html")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    for address in ("/page/main.js", "/page/style.css"):
        assert address in text
        assert ask(control_url, "GET", address)[0] == 200


@pytest.mark.parametrize("name", ["nothing.js", "__init__.py", "..%2f__init__.py", "index.html"])
def test_other_files_are_not_served(control_url, name):
    assert ask(control_url, "GET", f"/page/{name}")[0] == 404


def test_stream_begins_with_all_parts_and_goes_on_with_changes(control_url, parked_fetch):
    first, second = first_events(control_url, 2)
    parked = [one for name, part in first["set"].items() if name.startswith("purgatory/") for one in part["parked"]]
    assert [parked_fetch] in [one["keys"] for one in parked]
    assert {"broker/1", "broker/2", "broker/3", "partition/orders/0"} <= first["set"].keys()
    assert second["at_ms"] > first["at_ms"]
    assert "broker/1" not in second["set"]


def test_stream_has_the_partitions_that_are_searched_for(cluster, control_url):
    cluster.create_topic("orders", 12, 1)
    [event] = first_events(control_url, 1, "?search=orders-1")
    shown = [name for name in event["set"] if name.startswith("partition/")]
    assert shown == [f"partition/orders/{number}" for number in (1, 10, 11)]


def test_page_of_the_port_writes_with_its_token_alone(cluster, control_url):
    session = json.loads(ask(control_url, "GET", "/page/session")[2])
    own = {**JSON, "Origin": control_url}
    status, _, text = ask(control_url, "POST", "/brokers/2/pause", own)
    assert (status, cluster.broker(2).state) == (403, "running")
    assert "reload it" in text
    status, *_ = ask(control_url, "POST", "/brokers/2/pause", {**own, PAGE_TOKEN_HEADER: session["page_token"]})
    assert (status, cluster.broker(2).state) == (200, "paused")


def test_session_says_what_verbs_do_and_take(control_url):
    verbs = {verb["name"]: verb for verb in json.loads(ask(control_url, "GET", "/page/session")[2])["verbs"]}
    assert verbs["pause"]["text"] == "Stop the broker's process where it is, as SIGSTOP does."
    assert [each["field"] for each in verbs["set_link"]["parameters"]] == ["from", "to", "drop", "delay_ms"]
    assert {"api", "error", "delay_ms"} <= {each["name"] for each in verbs["inject"]["parameters"]}


def test_with_a_token_the_files_are_for_everybody_and_the_data_are_not():
    with Cluster(1, control=True, control_token="secret") as cluster:
        url = cluster.control_url
        assert [ask(url, "GET", path)[0] for path in ("/", "/page/app.js")] == [200, 200]
        assert [ask(url, "GET", path)[0] for path in ("/page/session", "/page/stream", "/picture")] == [401, 401, 401]
        assert ask(url, "GET", "/page/session", {"Authorization": "Bearer secret"})[0] == 200


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT"])
def test_read_only_port_refuses_every_write(method):
    guard = Guard("127.0.0.1", is_read_only=True)
    with pytest.raises(RefusedRequestError, match="--control-read-only") as refused:
        guard.admit(method, {"Host": "127.0.0.1:8090", **JSON}, path="/brokers/1/pause")
    assert refused.value.status == 403
    guard.admit("GET", {"Host": "127.0.0.1:8090"}, path="/status")


def test_pages_that_are_open_do_not_hold_up_the_end_of_the_cluster():
    with Cluster(1, control=True) as cluster:
        connection = HTTPConnection(cluster.control_url.removeprefix("http://"), timeout=TIMEOUT_S)
        connection.request("GET", "/page/stream")
        response = connection.getresponse()
        assert response.readline().startswith(b"data: ")
    assert b"" in list(response) or response.read() == b""
    connection.close()


@pytest.mark.parametrize("streams", [1, 5])
@pytest.mark.parametrize("cost_s", [0.001, 0.05])
def test_all_streams_together_take_less_than_two_percent_of_a_core(cost_s, streams):
    assert cost_s * streams / period_s(cost_s, streams) < 0.02


def test_pictures_are_fluid_where_they_cost_little_and_come_at_all_where_they_cost_much():
    assert period_s(0.001, 1) == SHORTEST_PERIOD_S
    assert period_s(10, 9) == LONGEST_PERIOD_S
