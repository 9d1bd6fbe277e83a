import struct

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.controller import SUPPORTED_FEATURES
from broker_sim.errors import ErrorCode
from broker_sim.handlers.api_table import ApiTable
from broker_sim.handlers.cluster.api_versions import handle_api_versions
from broker_sim.network import Connection
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import decode_response
from broker_sim.protocol.messages import ApiVersionsRequest

RANGES = [(0, 0, 13), (1, 4, 18), (18, 0, 4)]


def ask(broker, version=4, name="client", software_version="1.0"):
    request = ApiVersionsRequest()
    if version >= 3:
        request = ApiVersionsRequest(name, software_version)
    return broker.ask(handle_api_versions(RANGES), request, version)


@pytest.mark.parametrize("version", range(6))
def test_every_version_lists_each_api_with_its_range(broker, version):
    response = ask(broker, version)
    assert response.error_code == ErrorCode.NONE
    ranges = [(key.api_key, key.min_version, key.max_version) for key in response.api_keys]
    assert ranges == RANGES


@pytest.mark.parametrize("text", ["", "-", "a-", ".a", "a b", "a/b", "\u00e4"])
def test_malformed_software_name_or_version_is_refused_without_apis(broker, text):
    for response in (ask(broker, name=text), ask(broker, software_version=text)):
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert response.api_keys == []


@pytest.mark.parametrize("text", ["a", "1", "librdkafka", "apache-kafka-java", "4.3.1-rc1"])
def test_software_name_may_have_letters_digits_dots_and_dashes(broker, text):
    assert ask(broker, name=text, software_version=text).error_code == ErrorCode.NONE


def test_software_name_is_not_checked_before_version_3(broker):
    for version in range(3):
        assert ask(broker, version).error_code == ErrorCode.NONE


def test_features_with_lowest_level_0_are_listed_from_version_4(broker):
    # KIP-584 lets no supported level be 0; version 4 lifts that.
    from_0 = {feature.name for feature in SUPPORTED_FEATURES if feature.min_version == 0}
    others = {feature.name for feature in SUPPORTED_FEATURES} - from_0
    assert from_0
    assert {feature.name for feature in ask(broker, 3).supported_features} == others
    assert {feature.name for feature in ask(broker, 4).supported_features} == others | from_0


def test_finalized_features_carry_the_version_of_their_metadata(broker):
    response = ask(broker)
    assert response.finalized_features_epoch == broker.image.version
    levels = {
        feature.name: (feature.min_version_level, feature.max_version_level) for feature in response.finalized_features
    }
    assert levels == {name: (level, level) for name, level in broker.image.features.items()}


def ask_expecting(broker, cluster_id, node_id):
    """Ask in version 5, as a client that expects this cluster and node; KIP-1242."""
    request = ApiVersionsRequest("client", "1.0", cluster_id, node_id)
    return broker.ask(handle_api_versions(RANGES), request, 5)


def test_expected_cluster_and_node_are_answered_as_if_nothing_was_expected(broker):
    answer = ask_expecting(broker, broker.image.cluster_id, broker.broker_id)
    assert answer.error_code == ErrorCode.NONE
    assert answer.api_keys == ask(broker).api_keys


def test_client_that_expects_another_cluster_or_node_has_to_bootstrap_again(broker):
    for cluster_id, node_id in ((broker.image.cluster_id, broker.broker_id + 1), ("another", broker.broker_id)):
        answer = ask_expecting(broker, cluster_id, node_id)
        assert (answer.error_code, answer.api_keys) == (ErrorCode.REBOOTSTRAP_REQUIRED, [])


def test_cluster_without_node_or_node_without_cluster_is_an_invalid_request(broker):
    for cluster_id, node_id in ((broker.image.cluster_id, -1), (None, broker.broker_id)):
        assert ask_expecting(broker, cluster_id, node_id).error_code == ErrorCode.INVALID_REQUEST


# -- versions that are not served, answered before there is a handler --------------------------------


def exchange(*frames):
    """Send frames over a connection to a broker; return what it sent, and whether it closed."""
    cluster = VirtualCluster(1)
    node = cluster.nodes.node(1)
    transport = _Transport()
    connection = Connection(node.process, node.broker.dispatcher, 1 << 20, lambda _: None, lambda _: None)
    connection.connection_made(transport)
    for frame in frames:
        connection.data_received(struct.pack(">i", len(frame)) + frame)
    return transport.sent, transport.closed


class _Transport:
    def __init__(self):
        self.sent = []
        self.closed = False

    def get_extra_info(self, name):
        return ("client", 1)

    def writelines(self, chunks):
        self.sent.append(b"".join(chunks))

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


def request_header(key, version, correlation_id=5):
    return struct.pack(">hhih", key, version, correlation_id, -1)


@pytest.mark.parametrize("version", [6, 99, 32767, -1])
def test_unserved_version_is_answered_in_version_0_with_the_served_range(version):
    # A client that is newer than the broker cannot know what it may send; KIP-511.
    (answer,), closed = exchange(request_header(18, version) + b"\0\0\0\0")
    correlation_id, response = decode_response(18, 0, memoryview(answer)[4:])
    assert correlation_id == 5
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    ranges = [(key.api_key, key.min_version, key.max_version) for key in response.api_keys]
    assert ranges == [(ApiKey.API_VERSIONS, 0, 5)]
    assert not closed


def test_connection_stays_open_for_a_retry():
    sent, closed = exchange(request_header(18, 99, 1) + b"\0", request_header(18, 0, 2))
    correlation_id, response = decode_response(18, 0, memoryview(sent[1])[4:])
    assert (correlation_id, response.error_code) == (2, ErrorCode.NONE)
    assert not closed


@pytest.mark.parametrize(
    ("key", "version"), [(ApiKey.FETCH, 3), (ApiKey.FETCH, 19), (ApiKey.PRODUCE, 2), (ApiKey.JOIN_GROUP, 0)]
)
def test_unserved_version_of_another_api_closes_the_connection(key, version):
    assert exchange(request_header(key, version)) == ([], True)


def test_served_versions_are_advertised_and_lower_ones_for_produce_only():
    # librdkafka takes its compression types from Produce's lowest version, so Kafka advertises 0.
    table = ApiTable()
    broker = VirtualCluster(1)
    client = broker.client()
    pending = client.send(1, ApiVersionsRequest(), 0)
    broker.run_until(lambda: pending.done)
    for advertised in pending.response.api_keys:
        key = ApiKey(advertised.api_key)
        served = [
            version
            for version in range(advertised.min_version, advertised.max_version + 1)
            if table.find(key, version) is not None
        ]
        lowest = 3 if key is ApiKey.PRODUCE else advertised.min_version
        assert served == list(range(lowest, advertised.max_version + 1)), key.name
        assert table.find(key, advertised.max_version + 1) is None
