"""The requests that a cluster keeps for tests, in virtual time."""

import json

import pytest

from broker_sim import ErrorCode, Fault, VirtualCluster, WrongStateError
from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request

KEY = ("orders", 0)


@pytest.fixture
def cluster():
    with VirtualCluster(1, topics=["orders"]) as made:
        made.keep_requests(3)
        yield made


@pytest.fixture
def send(cluster):
    clients = {name: cluster.client(name) for name in ("shop", "billing")}

    def send(request, version=PRODUCE_VERSION, client="shop"):
        return clients[client].send(1, request, version)

    return send


@pytest.fixture
def ask(cluster, send):
    def ask(*args, **options):
        pending = send(*args, **options)
        cluster.run_until(lambda: pending.done)

    return ask


def test_request_is_kept_with_its_answer(cluster, ask):
    ask(produce_request(KEY, values=(b"a",)))
    (kept,) = cluster.requests()
    assert (kept.api, kept.api_version, kept.client_id) == ("Produce", PRODUCE_VERSION, "shop")
    assert (kept.broker, kept.client_host, kept.elapsed_ms) == (1, "127.0.0.1", 0)
    assert kept.request.topic_data[0].name == "orders"
    assert kept.response.responses[0].partition_responses[0].base_offset == 0
    assert kept.errors == ()
    plain = cluster.requests().to_json()
    assert json.loads(json.dumps(plain)) == plain


def test_requests_are_found_by_api_and_client(cluster, ask):
    ask(produce_request(KEY))
    ask(produce_request(KEY), client="billing")
    ask(fetch_request(KEY), FETCH_VERSION)
    assert [kept.api for kept in cluster.requests(client_id="shop")] == ["Produce", "Fetch"]
    assert [kept.client_id for kept in cluster.requests(api="PRODUCE")] == ["shop", "billing"]
    assert cluster.requests("fetch", "billing") == ()
    with pytest.raises(ValueError, match="unknown API 'Frobnicate'"):
        cluster.requests("Frobnicate")


def test_only_the_last_ones_are_kept(cluster, ask):
    for value in (b"a", b"b", b"c", b"d"):
        ask(produce_request(KEY, values=(value,)))
    offsets = [kept.response.responses[0].partition_responses[0].base_offset for kept in cluster.requests()]
    assert offsets == [1, 2, 3]


def test_status_has_errors_and_shows_missing_responses(cluster, ask, send):
    cluster.inject(Fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER", delay_ms=7, count=1))
    ask(produce_request(KEY))
    send(fetch_request(KEY, max_wait_ms=500), FETCH_VERSION, client="billing")
    cluster.advance(100)
    failed, waiting = cluster.requests()
    assert (failed.errors, failed.elapsed_ms) == ((ErrorCode.NOT_LEADER_OR_FOLLOWER,), 7)
    assert (waiting.response, waiting.elapsed_ms) == (None, None)
    cluster.advance(500)
    assert cluster.requests(api="Fetch")[0].elapsed_ms == 500


def test_reset_forgets_them_and_keeps_those_that_come(cluster, ask):
    ask(produce_request(KEY))
    cluster.reset()
    assert cluster.requests() == ()
    ask(produce_request(KEY))
    assert len(cluster.requests()) == 1


def test_no_request_is_kept_by_default(cluster):
    cluster.keep_requests(0)
    with pytest.raises(WrongStateError, match=r"call keep_requests\(\) first"):
        cluster.requests()
    with pytest.raises(ValueError, match="at least 0, not -1"):
        cluster.keep_requests(-1)
