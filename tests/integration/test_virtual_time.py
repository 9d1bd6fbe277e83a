"""Scenarios on a virtual cluster: no thread, no socket, no time."""

import threading

import pytest
from broker_sim_integration.clients import raw_client, stopwatch
from broker_sim_integration.clients.broker_client import BrokerClient, Position
from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
from broker_sim_integration.virtual_time import virtual_time

from broker_sim import VirtualCluster


@pytest.fixture
def cluster():
    """Three brokers in virtual time."""
    with VirtualCluster(3) as cluster:
        yield cluster


def test_waits_take_virtual_time_and_no_thread(cluster):
    threads = threading.active_count()
    with virtual_time(cluster) as running, ClusterUnderTest(running, "any") as under_test:
        topic = under_test.topics.create()
        client = under_test.connect(under_test.first)
        reply = client.start_fetch(Position(topic), max_wait_ms=60_000).result()
        assert reply.elapsed_ms == 60_000
        assert threading.active_count() == threads


def test_an_answer_that_does_not_come_is_missed_in_virtual_time(cluster):
    with virtual_time(cluster) as running, ClusterUnderTest(running, "any") as under_test:
        topic = under_test.topics.create()
        pending = under_test.connect(under_test.first).start_fetch(Position(topic), max_wait_ms=20_000)
        with pytest.raises(raw_client.NoAnswerError):
            pending.result(timeout_ms=10_000)


def test_listener_is_called_with_requests_and_responses(cluster):
    heard = []
    listen = lambda kind, _, message, version: heard.append((kind, type(message).__name__, version))  # noqa: E731
    with virtual_time(cluster, listen) as running, BrokerClient(*running.addresses[1]) as client:
        client.init_producer_id()
    assert heard == [("send", "InitProducerIdRequest", 5), ("answer", "InitProducerIdResponse", 5)]


def test_closed_connection_ends_what_waits(cluster):
    with virtual_time(cluster) as running, ClusterUnderTest(running, "any") as under_test:
        topic = under_test.topics.create([2])
        pending = under_test.connect(2).start_fetch(Position(topic), max_wait_ms=20_000)
        under_test.faults.kill(2)
        with pytest.raises(raw_client.ConnectionEndedError):
            pending.result()


def test_real_clients_are_as_before_after_the_block(cluster):
    names = ((stopwatch, "perf_counter_ns"), (stopwatch, "_NEVER"), (raw_client.RawConnection, "__init__"))
    before = [getattr(owner, name) for owner, name in names]
    with virtual_time(cluster):
        assert [getattr(owner, name) for owner, name in names] != before
    assert [getattr(owner, name) for owner, name in names] == before
