"""A client in virtual time: one connection to each broker, responses in the order of requests."""

import pytest

from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode

KEY = ("orders", 0)


@pytest.fixture
def cluster():
    made = VirtualCluster(seed=6)
    made.create_topic("orders", assignments={0: [1, 2, 3]})
    return made


@pytest.fixture
def client(cluster):
    return cluster.client()


def test_pipelined_requests_are_answered_in_their_order(cluster, client):
    finished = []
    waiting = client.send(1, fetch_request(KEY, max_wait_ms=400), FETCH_VERSION, finished.append)
    quick = client.send(1, produce_request(KEY, acks=1), PRODUCE_VERSION, finished.append)
    cluster.run_until(lambda: quick.done)
    assert finished == [waiting, quick]
    assert (waiting.elapsed_ms, quick.elapsed_ms) == (400, 400)


def test_requests_to_different_brokers_do_not_wait_for_each_other(cluster, client):
    waiting = client.send(2, fetch_request(KEY, max_wait_ms=400), FETCH_VERSION)
    quick = client.send(1, produce_request(KEY, acks=1), PRODUCE_VERSION)
    cluster.run_until(lambda: quick.done)
    assert not waiting.done


def test_produce_with_acks_0_is_done_at_once_without_a_response(cluster, client):
    pending = client.send(1, produce_request(KEY, acks=0), PRODUCE_VERSION)
    cluster.run_until(lambda: pending.done)
    assert (pending.response, pending.disconnected, pending.elapsed_ms) == (None, False, 0)
    cluster.run_until(lambda: cluster.high_watermark("orders") == 1)


def test_kill_of_the_broker_ends_all_requests_and_the_next_one_connects_anew(cluster, client):
    pending = [client.send(1, fetch_request(KEY, max_wait_ms=30_000), FETCH_VERSION) for _ in range(2)]
    cluster.advance(100)
    cluster.kill(1)
    cluster.run_until(lambda: all(each.done for each in pending))
    assert all(each.disconnected for each in pending)
    cluster.start(1)
    again = client.send(1, fetch_request(KEY, max_wait_ms=1), FETCH_VERSION)
    cluster.run_until(lambda: again.done)
    assert not again.disconnected


def test_response_that_comes_in_pieces_is_whole(cluster, client):
    value = bytes(300_000)  # more than the window of a connection in the virtual network
    produced = client.send(1, produce_request(KEY, values=(value,)), PRODUCE_VERSION)
    cluster.run_until(lambda: produced.done)
    fetched = client.send(1, fetch_request(KEY), FETCH_VERSION)
    cluster.run_until(lambda: fetched.done)
    (partition,) = fetched.response.responses[0].partitions
    assert partition.error_code == ErrorCode.NONE
    assert value in bytes(partition.records)
