"""Claims about which APIs are served in which versions."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.controller import initial_features, supported_features
from broker_sim.errors import ConfigError, ErrorCode
from broker_sim.handlers.api_table import ApiTable
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeLogDirsRequest,
    InitProducerIdRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
)
from broker_sim.protocol.release import DEFAULT_RELEASE, find_release, releases

OLDEST = "2.1"
NEWEST = "4.4"


def advertised(broker, table, version=0):
    """Return what ApiVersions tells of the table, by API: the lowest and the highest version."""
    spec = table.find(ApiKey.API_VERSIONS, version)
    request = ApiVersionsRequest("client", "1.0") if version >= 3 else ApiVersionsRequest()
    response = broker.ask(spec.handler, request, version)
    return {ApiKey(api.api_key): (api.min_version, api.max_version) for api in response.api_keys}


def served(table, key):
    """Return every version in which the table finds the API."""
    return [version for version in range(-1, 40) if table.find(key, version) is not None]


@pytest.mark.parametrize("release", [None, *releases()])
def test_advertised_versions_are_the_served_ones_except_for_produce(broker, release):
    # librdkafka takes its compression types from Produce's lowest version, so Kafka advertises 0.
    table = ApiTable(find_release(release))
    ranges = advertised(broker, table)
    for key in ApiKey:
        lowest, highest = ranges.get(key, (0, -1))
        lowest = 3 if key is ApiKey.PRODUCE else lowest
        assert served(table, key) == list(range(lowest, highest + 1)), key.name


def test_default_is_a_known_release(broker):
    assert advertised(broker, ApiTable()) == advertised(broker, ApiTable(find_release(DEFAULT_RELEASE)))


@pytest.mark.parametrize("release", releases())
def test_release_limits_every_api_to_the_versions_that_it_has_too(release):
    limited, limits = ApiTable(find_release(release)), find_release(release).apis
    for key in ApiKey:
        lowest, highest = limits.get(key, (0, -1))
        ours = {*served(ApiTable(find_release(OLDEST)), key), *served(ApiTable(find_release(NEWEST)), key)}
        common = [version for version in range(lowest, highest + 1) if min(ours, default=99) <= version <= max(ours)]
        assert served(limited, key) == common, key.name


def test_old_release_advertises_its_own_highest_versions_and_no_later_apis(broker):
    ranges = advertised(broker, ApiTable(find_release("2.8")))
    assert ranges[ApiKey.PRODUCE] == (0, 9)
    assert ranges[ApiKey.FETCH] == (4, 12)
    assert ranges[ApiKey.METADATA] == (0, 11)
    assert ranges[ApiKey.API_VERSIONS] == (0, 3)
    assert ApiKey.DESCRIBE_CLUSTER in ranges
    assert ApiKey.DESCRIBE_TOPIC_PARTITIONS not in ranges
    assert ApiKey.DESCRIBE_CLUSTER not in advertised(broker, ApiTable(find_release("2.7")))


def test_client_newer_than_the_release_gets_the_range_of_api_versions():
    table = ApiTable(find_release("2.1"))
    assert table.find(ApiKey.API_VERSIONS, 3) is None
    answer = table.unsupported_version(ErrorCode.UNSUPPORTED_VERSION)
    assert [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys] == [(ApiKey.API_VERSIONS, 0, 2)]


@pytest.mark.parametrize("release", releases())
def test_features_of_a_new_cluster_are_supported_by_its_release(release):
    supported = {f.name: f for f in supported_features(find_release(release))}
    for name, level in initial_features(find_release(release)).items():
        assert supported[name].min_version <= level <= supported[name].max_version


def test_features_are_those_of_the_release():
    assert initial_features(find_release("4.4")) == {
        "metadata.version": 33,
        "group.version": 1,
        "transaction.version": 2,
        "eligible.leader.replicas.version": 1,
        "share.version": 2,
        "streams.version": 1,
    }
    assert initial_features(find_release(DEFAULT_RELEASE)) == initial_features(find_release(None))
    assert initial_features(find_release("4.0")) == {
        "metadata.version": 25,
        "group.version": 1,
        "transaction.version": 2,
    }
    assert initial_features(find_release("3.7")) == {"metadata.version": 19}
    assert initial_features(find_release("3.2")) == {}
    assert supported_features(find_release("3.2")) == ()


@pytest.mark.parametrize("release", ["4.1", "4.2", "4.3", "4.4"])
def test_unfinished_versions_are_served_where_they_are_enabled(broker, release):
    plain = find_release(release)
    table = ApiTable(plain.with_unstable(apis=True, features=False))
    assert advertised(broker, table)[ApiKey.INIT_PRODUCER_ID] == (0, 6)
    assert table.find(ApiKey.INIT_PRODUCER_ID, 6)
    assert not ApiTable(plain).find(ApiKey.INIT_PRODUCER_ID, 6)
    others = {key: range_ for key, range_ in advertised(broker, table).items() if key not in plain.unstable_apis}
    assert others.items() <= advertised(broker, ApiTable(plain)).items()


@pytest.mark.parametrize(("release", "level"), [("4.0", 26), ("4.1", 29), ("4.2", 30), ("4.3", 31), ("4.4", 34)])
def test_unfinished_level_is_supported_where_it_is_enabled(release, level):
    unstable = {"unstable.feature.versions.enable": True}
    cluster = VirtualCluster(1, as_version=release, configs=unstable, features={"metadata.version": level})
    assert cluster.nodes.controller.image.features["metadata.version"] == level
    default = VirtualCluster(1, as_version=release, configs=unstable).nodes.controller.image.features
    assert default == initial_features(find_release(release))
    with pytest.raises(ConfigError, match=f"not {level}"):
        VirtualCluster(1, as_version=release, features={"metadata.version": level})


def test_cluster_as_an_older_release_serves_its_versions_and_no_newer_ones():
    cluster = VirtualCluster(1, as_version="3.7")
    client = cluster.client()

    def ask(message, version):
        pending = client.send(1, message, version)
        cluster.run_until(lambda: pending.done)
        return pending

    answer = ask(ApiVersionsRequest("client", "1.0"), 3).response
    assert max(api.max_version for api in answer.api_keys if api.api_key == ApiKey.FETCH) == 16
    assert [(f.name, f.max_version_level) for f in answer.finalized_features] == [("metadata.version", 19)]
    assert ask(MetadataRequest([]), 12).response.brokers
    assert ask(MetadataRequest([]), 13).disconnected


def ask_as(cluster, message, version):
    pending = cluster.client().send(1, message, version)
    cluster.run_until(lambda: pending.done)
    return pending


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"enable2_pc": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep_prepared_txn": True}, ErrorCode.UNSUPPORTED_VERSION),
        ({}, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_two_phase_commit_is_read_from_the_request(fields, error):
    cluster = VirtualCluster(1, configs={"unstable.api.versions.enable": True})
    answer = ask_as(cluster, InitProducerIdRequest("copier", 60_000, **fields), 6).response
    assert answer.error_code == error


@pytest.mark.parametrize("version", [0, 1])
def test_topics_are_created_and_deleted_by_clients_of_old_releases(version):
    cluster = VirtualCluster(1, as_version="3.7")
    creatable = CreateTopicsRequest.CreatableTopic("t", 2, 1)
    for error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        (topic,) = ask_as(cluster, CreateTopicsRequest([creatable], 5_000), version).response.topics
        assert (topic.name, topic.error_code) == ("t", error_code)
        assert bool(topic.error_message) is (version > 0 and error_code != ErrorCode.NONE)
    (deleted,) = ask_as(cluster, DeleteTopicsRequest(topic_names=["t"], timeout_ms=5_000), version).response.responses
    assert (deleted.name, deleted.error_code) == ("t", ErrorCode.NONE)


@pytest.mark.parametrize("version", [0, 1])
def test_clients_of_old_releases_can_request_the_end_of_an_epoch(version):
    cluster = VirtualCluster(1, as_version="3.7", topics=["t:1:1"])
    request = OffsetForLeaderEpochRequest
    asked = request.OffsetForLeaderTopic("t", [request.OffsetForLeaderPartition(0, leader_epoch=0)])
    (topic,) = ask_as(cluster, request(topics=[asked]), version).response.topics
    assert [(end.partition, end.error_code, end.end_offset) for end in topic.partitions] == [(0, ErrorCode.NONE, 0)]


def test_clients_of_old_releases_can_describe_log_directories():
    cluster = VirtualCluster(1, as_version="3.7", topics=["t:1:1"])
    (directory,) = ask_as(cluster, DescribeLogDirsRequest(None), 0).response.results
    assert "t" in {topic.name for topic in directory.topics}


def test_versions_that_kafka_4_has_removed_are_not_served_by_default():
    cluster = VirtualCluster(1)
    assert ask_as(cluster, DeleteTopicsRequest(topic_names=["t"], timeout_ms=5_000), 0).disconnected
