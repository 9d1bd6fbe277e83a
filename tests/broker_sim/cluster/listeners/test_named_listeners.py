"""A broker answers with addresses of the listener on which it was asked."""

import pytest

from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ConfigError, ErrorCode
from broker_sim.protocol import messages

LISTENERS = {"INSIDE": "127.0.0.1", "OUTSIDE": "127.0.0.2"}
TEXT = "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.2:0"
HINTING_PRODUCE_VERSION = 11
NO_NODE = (-1, "", -1)


@pytest.fixture
def cluster():
    with VirtualCluster(listeners=TEXT) as running:
        running.create_topic("t", assignments={0: [1, 2, 3]})
        yield running


@pytest.fixture
def partial_cluster():
    """A cluster whose broker 3 is not to be found from outside."""
    own = {3: {"advertised.listeners": "INSIDE://127.0.0.1:0"}}
    with VirtualCluster(listeners=TEXT, broker_configs=own) as running:
        running.create_topic("t", assignments={0: [3, 1]})
        yield running


def ask(cluster, listener, request, version, broker_id=1):
    pending = cluster.client(listener=listener).send(broker_id, request, version)
    cluster.run_until(lambda: pending.done)
    assert not pending.disconnected
    return pending.response


def metadata(cluster, listener, version=12):
    topics = [messages.MetadataRequest.MetadataRequestTopic(name="t")]
    return ask(cluster, listener, messages.MetadataRequest(topics=topics), version)


def find_coordinator(cluster, listener, key="g"):
    def asked():
        response = ask(cluster, listener, messages.FindCoordinatorRequest(key=key), 3)
        return response.node_id, response.host, response.port

    for _ in range(20):  # the topic of the offsets is made when somebody asks
        if asked() != NO_NODE:
            break
        cluster.advance(100)
    return asked()


def addresses(cluster, listener):
    return cluster.inside.listeners.addresses_of(listener)


@pytest.mark.parametrize("listener", LISTENERS)
def test_addresses_in_responses_are_of_the_listener_of_the_request(cluster, listener):
    expected = addresses(cluster, listener)
    assert {host for host, _ in expected.values()} == {LISTENERS[listener]}
    seen = metadata(cluster, listener)
    assert {b.node_id: (b.host, b.port) for b in seen.brokers} == expected
    seen = ask(cluster, listener, messages.DescribeClusterRequest(), 1)
    assert {b.broker_id: (b.host, b.port) for b in seen.brokers} == expected
    node_id, *address = find_coordinator(cluster, listener)
    assert tuple(address) == expected[node_id]


@pytest.mark.parametrize("listener", LISTENERS)
def test_leader_in_an_error_has_the_address_of_the_requests_listener(cluster, listener):
    seen = ask(cluster, listener, produce_request(("t", 0)), HINTING_PRODUCE_VERSION, broker_id=2)
    assert [(e.node_id, e.host, e.port) for e in seen.node_endpoints] == [(1, *addresses(cluster, listener)[1])]


def test_broker_without_the_listener_is_left_out(partial_cluster):
    outside = metadata(partial_cluster, "OUTSIDE")
    assert [broker.node_id for broker in outside.brokers] == [1, 2]
    (found,) = outside.topics[0].partitions
    assert (found.error_code, found.leader_id) == (ErrorCode.LISTENER_NOT_FOUND, -1)
    assert (found.replica_nodes, found.offline_replicas) == ([3, 1], [3])
    seen = ask(partial_cluster, "OUTSIDE", messages.DescribeClusterRequest(), 1)
    assert [broker.broker_id for broker in seen.brokers] == [1, 2]
    inside = metadata(partial_cluster, "INSIDE")
    assert [broker.node_id for broker in inside.brokers] == [1, 2, 3]
    (found,) = inside.topics[0].partitions
    assert (found.error_code, found.leader_id, found.offline_replicas) == (0, 3, [])


@pytest.mark.parametrize(
    ("version", "replicas"), [(0, [1]), (5, [3, 1])], ids=["without missing replicas", "with them"]
)
def test_older_clients_get_leader_not_available(partial_cluster, version, replicas):
    (found,) = metadata(partial_cluster, "OUTSIDE", version).topics[0].partitions
    assert (found.error_code, found.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert found.replica_nodes == replicas


def test_described_partitions_have_no_leader_that_the_client_cannot_reach(partial_cluster):
    topics = [messages.DescribeTopicPartitionsRequest.TopicRequest("t")]
    request = messages.DescribeTopicPartitionsRequest(topics=topics)
    for listener, leader, offline in (("OUTSIDE", -1, [3]), ("INSIDE", 3, [])):
        (found,) = ask(partial_cluster, listener, request, 0).topics[0].partitions
        assert (found.leader_id, found.offline_replicas) == (leader, offline)


def test_a_coordinator_that_the_client_cannot_reach_is_not_available(partial_cluster):
    coordinators = {key: find_coordinator(partial_cluster, "INSIDE", key)[0] for key in map(str, range(20))}
    key = next(key for key, broker_id in coordinators.items() if broker_id == 3)
    found = ask(partial_cluster, "OUTSIDE", messages.FindCoordinatorRequest(key=key), 3)
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (found.node_id, found.host, found.port) == NO_NODE


def test_status_and_addresses_have_every_listener_and_keep_their_ports(cluster):
    before = cluster.broker(1).listeners
    assert list(before) == list(LISTENERS)
    assert cluster.broker(1).address == before["INSIDE"]
    cluster.kill(1)
    cluster.start(1)
    assert cluster.broker(1).listeners == before
    outside = cluster.inside.bootstrap_servers_of("outside")
    assert outside == ",".join(cluster.broker(n).listeners["OUTSIDE"] for n in (1, 2, 3))
    with pytest.raises(ConfigError, match="unknown listener 'SSL'; listeners: INSIDE, OUTSIDE"):
        cluster.inside.bootstrap_servers_of("SSL")


def test_a_configuration_of_kafka_is_described_as_it_was_given():
    configs = {
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        "inter.broker.listener.name": "A",
    }
    resource = messages.DescribeConfigsRequest.DescribeConfigsResource(4, "1", None)
    with VirtualCluster(1, configs=configs) as cluster:
        request = messages.DescribeConfigsRequest(resources=[resource])
        (result,) = ask(cluster, "B", request, 1).results
    described = {entry.name: entry.value for entry in result.configs}
    assert {name: described[name] for name in configs} == configs
    assert described["advertised.listeners"] is None
