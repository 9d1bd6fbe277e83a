"""Listening sockets of brokers: when they accept clients, and on which ports."""

import pytest

from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, fetch_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.runtime.links import CONTROLLER_ID, LinkFault


@pytest.fixture
def cluster():
    made = VirtualCluster(seed=2)
    made.create_topic("orders", assignments={0: [3, 1, 2]})
    return made


@pytest.fixture
def listeners(cluster):
    return cluster.inside.listeners


def is_refused(cluster, broker_id):
    request = fetch_request(("orders", 0), max_wait_ms=1)
    pending = cluster.client().send(broker_id, request, FETCH_VERSION)
    cluster.run_until(lambda: pending.done)
    return pending.disconnected


def test_broker_rejects_clients_until_it_learns_that_it_is_unfenced(cluster, listeners):
    cluster.kill(3)
    cluster.advance(20_000)
    cluster.nodes.links.set_fault(3, CONTROLLER_ID, LinkFault(delay_ms=100))
    cluster.start(3, wait=False)
    started_ms, restarted = cluster.now_ms, cluster.nodes.brokers[3]
    cluster.advance(199)
    assert restarted.image.brokers[3].epoch == restarted.lifecycle.broker_epoch
    assert not listeners.is_accepting(3)
    assert is_refused(cluster, 3)
    cluster.run_until(lambda: listeners.is_accepting(3))
    assert cluster.now_ms == started_ms + 200
    assert not is_refused(cluster, 3)


def test_broker_keeps_its_port_in_its_next_life(cluster, listeners):
    before = [listeners.advertised(broker_id) for broker_id in (1, 2, 3)]
    assert len({endpoint.port for (endpoint,) in before}) == 3
    cluster.kill(3)
    cluster.start(3)
    assert [listeners.advertised(broker_id) for broker_id in (1, 2, 3)] == before


def test_close_before_the_broker_has_caught_up_leaves_nothing_to_open(cluster, listeners):
    cluster.kill(3)
    cluster.start(3, wait=False)
    cluster.kill(3)
    cluster.advance(20_000)
    assert not listeners.is_accepting(3)
    assert is_refused(cluster, 3)


def test_what_clients_send_is_held_until_they_are_released(cluster, listeners):
    listeners.hold_clients(3)
    request = fetch_request(("orders", 0), max_wait_ms=1)
    pending = cluster.client().send(3, request, FETCH_VERSION)
    cluster.advance(5_000)
    assert not pending.done
    listeners.release_clients(3)
    cluster.run_until(lambda: pending.done)
    assert not pending.disconnected
