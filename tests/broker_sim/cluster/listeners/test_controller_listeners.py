"""A listener of controllers leads to the controller: what it serves, and that changes made there reach the brokers."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.controller import CONTROLLER_ID
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey

CONFIGS = {
    "listeners": "PLAINTEXT://:0,CONTROLLER://:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
}
BROKER = 4
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


def test_response_has_the_address_of_the_controller_that_got_the_request(cluster):
    response = send(cluster, messages.DescribeClusterRequest(endpoint_type=CONTROLLERS), 1).response
    address = cluster.inside.listeners.addresses_of("CONTROLLER")[1]
    assert [(each.broker_id, each.host, each.port) for each in response.brokers] == [(CONTROLLER_ID, *address)]


def test_a_topic_that_is_created_there_is_at_the_brokers(cluster):
    topic = messages.CreateTopicsRequest.CreatableTopic("t", 1, 2)
    send(cluster, messages.CreateTopicsRequest([topic], timeout_ms=1000), 7)
    assert "t" in {each.name for each in cluster.status().topics}


def test_request_for_brokers_returns_no_controllers(cluster):
    response = send(cluster, messages.DescribeClusterRequest(), 1, listener="PLAINTEXT").response
    addresses = cluster.inside.listeners.addresses_of("PLAINTEXT")
    assert {each.broker_id: (each.host, each.port) for each in response.brokers} == addresses


def alter_log_config(cluster, broker_id, listener):
    request_type = messages.IncrementalAlterConfigsRequest
    change = request_type.AlterableConfig("message.max.bytes", 0, "5000")
    resource = request_type.AlterConfigsResource(BROKER, str(broker_id), [change])
    (response,) = send(cluster, request_type([resource]), 1, listener).response.responses
    return response.error_code


def test_the_configurations_of_every_broker_are_changed_there(cluster):
    assert alter_log_config(cluster, 2, "PLAINTEXT") == ErrorCode.INVALID_REQUEST
    assert alter_log_config(cluster, 2, "CONTROLLER") == ErrorCode.NONE
    assert alter_log_config(cluster, CONTROLLER_ID, "CONTROLLER") == ErrorCode.NONE
    assert alter_log_config(cluster, CONTROLLER_ID + 1, "CONTROLLER") == ErrorCode.BROKER_ID_NOT_REGISTERED
    image = cluster.inside.nodes.controller.image
    changed = {"message.max.bytes": "5000"}
    assert [image.dynamic_broker_configs(node_id) for node_id in (2, CONTROLLER_ID)] == [changed, changed]


@pytest.mark.parametrize(("node_id", "error_code"), [(CONTROLLER_ID, ErrorCode.NONE), (1, ErrorCode.INVALID_REQUEST)])
def test_the_controllers_own_configurations_are_described_there(cluster, node_id, error_code):
    resource = messages.DescribeConfigsRequest.DescribeConfigsResource(BROKER, str(node_id), None)
    (result,) = send(cluster, messages.DescribeConfigsRequest([resource]), 4).response.results
    assert (result.error_code, bool(result.configs)) == (error_code, error_code == ErrorCode.NONE)
