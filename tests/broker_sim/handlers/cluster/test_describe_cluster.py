import pytest

from broker_sim.config import Endpoint
from broker_sim.controller import CONTROLLER_ID
from broker_sim.errors import ErrorCode
from broker_sim.handlers.cluster.describe_cluster import handle_describe_cluster, handle_describe_controllers
from broker_sim.protocol.messages import DescribeClusterRequest

VERSIONS = range(3)
BROKERS, CONTROLLERS = 1, 2
DEFAULT_LISTENER = "PLAINTEXT"


def describe(broker, version=2, **fields):
    return broker.ask(handle_describe_cluster, DescribeClusterRequest(**fields), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_living_brokers_are_listed_by_id_with_their_addresses(broker, version):
    response = describe(broker, version)
    assert (response.error_code, response.cluster_id) == (ErrorCode.NONE, "cluster")
    assert [(b.broker_id, b.host, b.port, b.rack) for b in response.brokers] == [
        (1, "127.0.0.1", 9001, None),
        (2, "127.0.0.1", 9002, None),
        (3, "127.0.0.1", 9003, None),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_fenced_broker_is_left_out(broker, version):
    broker.kill(3)
    assert [b.broker_id for b in describe(broker, version).brokers] == [1, 2]


def test_fenced_broker_is_listed_as_such_on_demand(broker):
    broker.kill(3)
    response = describe(broker, include_fenced_brokers=True)
    assert [(b.broker_id, b.is_fenced) for b in response.brokers] == [(1, False), (2, False), (3, True)]


def test_any_living_broker_is_named_as_the_controller(broker):
    broker.kill(3)
    named = {describe(broker, include_fenced_brokers=True).controller_id for _ in range(50)}
    assert named == {1, 2}


def test_no_living_broker_means_no_controller(make_broker):
    response = describe(make_broker(brokers=()))
    assert (response.controller_id, response.brokers) == (-1, [])


def test_authorized_operations_are_listed_on_demand_only(broker):
    assert describe(broker).cluster_authorized_operations == -(1 << 31)
    asked = describe(broker, include_cluster_authorized_operations=True)
    assert asked.cluster_authorized_operations == 8096  # what Kafka 4.3.1 says


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("endpoint_type", "error_code"),
    [(CONTROLLERS, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_controller_endpoints_are_refused(broker, version, endpoint_type, error_code):
    response = describe(broker, version, endpoint_type=endpoint_type)
    assert (response.error_code, response.controller_id) == (error_code, -1)
    assert response.brokers == []
    assert response.error_message


@pytest.mark.parametrize("version", [1, 2])
def test_a_controllers_listener_lists_the_controller_at_its_own_address(broker, version):
    broker.controller_endpoints = (
        Endpoint("OTHER", "localhost", 9094),
        Endpoint(DEFAULT_LISTENER, "localhost", 9093),
    )
    request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
    response = broker.ask(handle_describe_controllers, request, version)
    assert (response.error_code, response.cluster_id) == (ErrorCode.NONE, "cluster")
    assert (response.endpoint_type, response.controller_id) == (CONTROLLERS, CONTROLLER_ID)
    assert [(b.broker_id, b.host, b.port) for b in response.brokers] == [(CONTROLLER_ID, "localhost", 9093)]


@pytest.mark.parametrize(
    ("endpoint_type", "error_code"),
    [(BROKERS, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_a_controllers_listener_refuses_to_list_brokers(broker, endpoint_type, error_code):
    response = broker.ask(handle_describe_controllers, DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert (response.error_code, response.brokers) == (error_code, [])
