"""Named listeners: a client is told addresses of the listener that it uses, by a real Kafka and here.

No scenario, because the simulator of the comparison has one listener. Brokers of a local Java have two on
this machine.
"""

import pytest
from broker_sim_integration.clients import admin
from broker_sim_integration.clients.broker_client import BrokerClient
from broker_sim_integration.reference.clusters.waiting import wait_until
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.progress import to_stderr
from broker_sim_integration.reference.selection import select_reference

from broker_sim import Cluster
from broker_sim.protocol import messages

pytestmark = pytest.mark.soak(part="scenarios")

LISTENERS = ("INTERNAL", "EXTERNAL")
BROKERS = (1, 2, 3)
LEADER, FOLLOWER = 1, 2
BROKER_RESOURCE = 4
TIMEOUT_MS = 30_000


def ask(client, request, version, response):
    return client.request(request, version, response).message


def split(address):
    host, _, port = address.rpartition(":")
    return host, int(port)


def addresses_of(external):
    """Return host and port of every broker at each listener, from `advertised.listeners`."""
    found = {}
    for broker, address in external.items():
        resource = messages.DescribeConfigsRequest.DescribeConfigsResource(
            BROKER_RESOURCE, str(broker), ["advertised.listeners"]
        )
        request = messages.DescribeConfigsRequest(resources=[resource])
        with BrokerClient(*address) as client:
            (result,) = ask(client, request, 4, messages.DescribeConfigsResponse).results
        for text in result.configs[0].value.split(","):
            name, _, at = text.partition("://")
            found[name, broker] = split(at)
    return found


def seen_by_clients(addresses):
    """Return which listener's address of which broker each answer has, by listener and question."""
    names = {address: place for place, address in addresses.items()}
    with BrokerClient(*addresses["EXTERNAL", LEADER]) as client:
        topic = admin.create_topic(client, "listeners", [[LEADER, FOLLOWER, 3]], {})
        wait_until(lambda: 0 in admin.describe_partitions(client, topic.name), "a leader", timeout_ms=TIMEOUT_MS)
    seen = {}
    for listener in LISTENERS:
        with BrokerClient(*addresses[listener, FOLLOWER]) as client:
            listed = ask(client, messages.DescribeClusterRequest(), 1, messages.DescribeClusterResponse)
            wait_until(lambda: coordinator(client).port > 0, "offsets", timeout_ms=TIMEOUT_MS)
            found = coordinator(client)
            hinted = client.produce(topic, b"1").message.node_endpoints
            seen[listener] = {
                "Metadata": {n: names[at] for n, at in admin.brokers_of(client).items()},
                "DescribeCluster": {b.broker_id: names[b.host, b.port] for b in listed.brokers},
                "FindCoordinator": names[found.host, found.port] == (listener, found.node_id),
                "Produce": [(e.node_id, names[e.host, e.port]) for e in hinted],
            }
    return seen


def coordinator(client):
    request = messages.FindCoordinatorRequest(coordinator_keys=["g"])
    (found,) = ask(client, request, 4, messages.FindCoordinatorResponse).coordinators
    return found


@pytest.mark.real_kafka
def test_clients_of_two_listeners_are_told_addresses_as_by_kafka(require_or_skip):
    kafka = select_reference("jvm").cluster({}, progress=to_stderr)
    try:
        kafka.open()
    except ReferenceUnavailableError as unavailable:
        require_or_skip(str(unavailable))
    try:
        real = seen_by_clients(addresses_of({n: split(kafka.address(n)) for n in BROKERS}))
    finally:
        kafka.close()
    assert real["INTERNAL"]["Produce"] == [(LEADER, ("INTERNAL", LEADER))]
    assert real["EXTERNAL"]["Metadata"] == {n: ("EXTERNAL", n) for n in BROKERS}
    with Cluster(3, listeners="INTERNAL://127.0.0.1:0,EXTERNAL://127.0.0.1:0") as cluster:
        simulated = seen_by_clients(
            {
                (listener, broker.id): split(address)
                for broker in cluster.status().brokers
                for listener, address in broker.listeners.items()
            }
        )
    assert simulated == real
