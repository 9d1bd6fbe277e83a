"""A listener of controllers leads to the controller: what it serves, and that changes made there reach the brokers."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.controller import CONTROLLER_ID
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey

CONFIGS = {
    "listeners": "PLAINTEXT://:0,CONTROLLER://:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
}
CONTROLLERS = 2


@pytest.fixture
def cluster():
    with VirtualCluster(brokers=2, configs=CONFIGS) as running:
        yield running


def send(cluster, request, version, listener="CONTROLLER"):
    pending = cluster.client(listener=listener).send(1, request, version)
    cluster.run_until(lambda: pending.done)
    return pending


def test_it_serves_the_apis_of_controllers_only(cluster):
    keys = {api.api_key for api in send(cluster, messages.ApiVersionsRequest(), 2).response.api_keys}
    assert {ApiKey.CREATE_TOPICS, ApiKey.UPDATE_FEATURES, ApiKey.DESCRIBE_CLUSTER} <= keys
    assert not {ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FIND_COORDINATOR} & keys
    assert send(cluster, messages.MetadataRequest(), 12).disconnected
    assert not send(cluster, messages.MetadataRequest(), 12, listener="PLAINTEXT").disconnected


def test_the_address_of_the_controller_is_the_one_that_was_asked(cluster):
    response = send(cluster, messages.DescribeClusterRequest(endpoint_type=CONTROLLERS), 1).response
    address = cluster.inside.listeners.addresses_of("CONTROLLER")[1]
    assert [(each.broker_id, each.host, each.port) for each in response.brokers] == [(CONTROLLER_ID, *address)]


def test_a_topic_that_is_created_there_is_at_the_brokers(cluster):
    topic = messages.CreateTopicsRequest.CreatableTopic("t", 1, 2)
    send(cluster, messages.CreateTopicsRequest([topic], timeout_ms=1000), 7)
    assert "t" in {each.name for each in cluster.status().topics}


def test_clients_that_ask_for_brokers_hear_of_no_controller(cluster):
    response = send(cluster, messages.DescribeClusterRequest(), 1, listener="PLAINTEXT").response
    addresses = cluster.inside.listeners.addresses_of("PLAINTEXT")
    assert {each.broker_id: (each.host, each.port) for each in response.brokers} == addresses
