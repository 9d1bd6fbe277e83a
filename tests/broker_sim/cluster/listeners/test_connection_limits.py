"""Limits of connections reach the brokers while they run, as they reached Kafka 4.3.1."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ConfigError
from broker_sim.protocol import messages

TEXT = "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.2:0"
ALL, BROKER_1 = "", "1"
SET = 0
Alteration = messages.IncrementalAlterConfigsRequest


@pytest.fixture
def cluster():
    with VirtualCluster(1, listeners=TEXT) as running:
        yield running


def ask(client):
    return client.send(1, messages.DescribeClusterRequest(), 1)


def connect(cluster, count, listener="OUTSIDE"):
    """Return the answers that so many new clients wait for."""
    return [ask(cluster.client(listener=listener)) for _ in range(count)]


def answered(cluster, pending, within_ms=100):
    cluster.advance(within_ms)
    return [each.done and not each.disconnected for each in pending]


def alter(cluster, broker, name, value):
    entry = Alteration.AlterableConfig(name=name, config_operation=SET, value=value)
    resource = Alteration.AlterConfigsResource(4, broker, [entry])
    request = Alteration(resources=[resource])
    pending = cluster.admin.send(1, request, 1)
    cluster.run_until(lambda: pending.done)
    (outcome,) = pending.response.responses
    return outcome.error_code


@pytest.fixture(autouse=True)
def admin(cluster):
    """A client of the listener between brokers, which is not held up by limits of others."""
    cluster.admin = cluster.client(listener="INSIDE")
    return cluster.admin


def test_listener_is_limited_and_opened_again(cluster):
    assert not alter(cluster, BROKER_1, "listener.name.outside.max.connections", "2")
    pending = connect(cluster, 4)
    assert answered(cluster, pending) == [True, True, False, False]
    assert answered(cluster, connect(cluster, 2, "INSIDE")) == [True, True]
    assert not alter(cluster, ALL, "listener.name.outside.max.connections", "9")
    assert answered(cluster, pending) == [True, True, False, False]
    assert not alter(cluster, BROKER_1, "listener.name.outside.max.connections", "3")
    assert answered(cluster, pending) == [True, True, True, False]


def test_lower_limit_of_the_broker_ends_connections_but_not_between_brokers(cluster):
    outside = [cluster.client(listener="OUTSIDE") for _ in range(4)]
    assert all(answered(cluster, [ask(client) for client in outside]))
    assert answered(cluster, [ask(outside[0])]) == [True]
    assert not alter(cluster, ALL, "max.connections", "3")
    cluster.advance(100)
    # The third one is that of the admin client. Those that were ended connect again, in vain.
    assert answered(cluster, [ask(client) for client in outside]) == [True, False, False, True]
    assert answered(cluster, connect(cluster, 3, "INSIDE")) == [True, True, False]
    # Two took the places of the others, and the listener between brokers has the limit of the broker too.
    assert answered(cluster, [ask(client) for client in outside]) == [False] * 4


def test_rate_of_a_listener_is_set_for_all_brokers(cluster):
    assert not alter(cluster, ALL, "listener.name.outside.max.connection.creation.rate", "1")
    pending = connect(cluster, 12)
    assert answered(cluster, pending, 900) == [True] * 10 + [False] * 2
    assert answered(cluster, connect(cluster, 1, "INSIDE")) == [True]
    assert answered(cluster, pending, 100) == [True] * 11 + [False]


def test_connections_of_an_address_are_limited(cluster):
    assert alter(cluster, ALL, "max.connections.per.ip", "0")
    assert not alter(cluster, ALL, "max.connections.per.ip", "2")
    pending = [ask(cluster.client("crowd", "OUTSIDE")) for _ in range(3)]
    assert answered(cluster, pending) == [True, True, False]
    assert pending[2].disconnected
    assert answered(cluster, connect(cluster, 1)) == [True]


@pytest.mark.parametrize("value", ["x", "-1"])
def test_invalid_limit_of_a_listener_fails_the_start(value):
    configs = {"listener.name.outside.max.connections": value}
    with pytest.raises(ConfigError, match=r"for configuration max\.connections"):
        VirtualCluster(1, listeners=TEXT, configs=configs)
