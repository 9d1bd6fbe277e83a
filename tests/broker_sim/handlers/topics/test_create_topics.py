import pytest

from broker_sim.config import TOPIC_CONFIGS, ConfigSource
from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults import Fault
from broker_sim.handlers.topics.create_topics import handle_create_topics
from broker_sim.protocol.messages import CreateTopicsRequest

Topic = CreateTopicsRequest.CreatableTopic
Config = CreateTopicsRequest.CreatableTopicConfig
Assignment = CreateTopicsRequest.CreatableReplicaAssignment
VERSIONS = range(2, 8)


@pytest.fixture
def create(broker):
    def ask(*topics, version=7, timeout_ms=1_000, validate_only=False, at=broker):
        request = CreateTopicsRequest(list(topics), timeout_ms, validate_only)
        response = at.ask(handle_create_topics, request, version)
        return {topic.name: topic for topic in response.topics}

    return ask


@pytest.mark.parametrize("version", VERSIONS)
def test_topic_is_in_the_metadata_when_the_response_comes(broker, create, version):
    results = create(Topic("t", 2, 3), version=version)
    assert results["t"].error_code == ErrorCode.NONE
    assert [len(p.replicas) for p in broker.image.topics["t"].partitions] == [3, 3]


@pytest.mark.parametrize("version", VERSIONS)
def test_counts_configs_and_ids_are_returned_in_versions_that_have_them(broker, create, version):
    topic = create(Topic("t", 2, 3), version=version)["t"]
    numbers = (topic.num_partitions, topic.replication_factor)
    assert numbers == ((2, 3) if version >= 5 else (-1, -1))
    assert bool(topic.configs) == (version >= 5)
    expected_id = broker.image.topics["t"].topic_id if version >= 7 else bytes(16)
    assert topic.topic_id == expected_id


def test_numbers_left_out_are_the_brokers_defaults(make_broker, create):
    at = make_broker({"num.partitions": "4", "default.replication.factor": "2"})
    topic = create(Topic("t", -1, -1), at=at)["t"]
    assert (topic.num_partitions, topic.replication_factor) == (4, 2)


def test_configs_are_returned_by_name_with_the_source_of_each(create):
    topic = create(Topic("t", 1, 1, [], [Config("retention.ms", "5000")]))["t"]
    found = {config.name: (config.value, config.config_source) for config in topic.configs}
    assert found["retention.ms"] == ("5000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert found["min.insync.replicas"] == ("1", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    assert found["segment.bytes"] == ("1073741824", ConfigSource.DEFAULT_CONFIG)
    assert list(found) == sorted(found)
    assert set(found) == {name for name, each in TOPIC_CONFIGS.items() if not each.internal}


def test_config_of_the_request_is_returned_as_it_was_written(create):
    topic = create(Topic("t", 1, 1, [], [Config("retention.ms", " 9 ")]))["t"]
    assert {config.name: config.value for config in topic.configs}["retention.ms"] == " 9 "


def test_static_config_of_the_broker_is_a_source(make_broker, create):
    at = make_broker({"log.segment.bytes": "2000000"})
    configs = create(Topic("t", 1, 1), at=at)["t"].configs
    (segment_bytes,) = [c for c in configs if c.name == "segment.bytes"]
    assert segment_bytes.value == "2000000"
    assert segment_bytes.config_source == ConfigSource.STATIC_BROKER_CONFIG


def test_last_of_two_values_for_one_config_counts(broker, create):
    create(Topic("t", 1, 1, [], [Config("retention.ms", "1"), Config("retention.ms", "2")]))
    assert broker.image.topics["t"].configs == {"retention.ms": "2"}


def test_assignment_places_the_replicas(broker, create):
    topic = create(Topic("t", -1, -1, [Assignment(0, [3, 1]), Assignment(1, [2, 3])]))["t"]
    assert (topic.error_code, topic.num_partitions, topic.replication_factor) == (0, 2, 2)
    assert [p.replicas for p in broker.image.topics["t"].partitions] == [(3, 1), (2, 3)]


@pytest.mark.parametrize("version", VERSIONS)
def test_validate_only_answers_the_same_and_creates_nothing(broker, create, version):
    before = broker.image
    topic = create(Topic("t", 2, 3), version=version, validate_only=True)["t"]
    assert topic.error_code == ErrorCode.NONE
    assert broker.image is before


@pytest.mark.parametrize("version", VERSIONS)
def test_each_topic_fails_alone(broker, create, version):
    broker.create("old", [1])
    results = create(
        Topic("good", 1, 1),
        Topic("old", 1, 1),
        Topic("b/d", 1, 1),
        Topic("wide", 1, 4),
        Topic("none", 0, 1),
        Topic("__cluster_metadata", 1, 1),
        Topic("odd", 1, 1, [], [Config("retention.ms", "soon")]),
        version=version,
    )
    assert {name: topic.error_code for name, topic in results.items()} == {
        "good": ErrorCode.NONE,
        "old": ErrorCode.TOPIC_ALREADY_EXISTS,
        "b/d": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "wide": ErrorCode.INVALID_REPLICATION_FACTOR,
        "none": ErrorCode.INVALID_PARTITIONS,
        "__cluster_metadata": ErrorCode.INVALID_REQUEST,
        "odd": ErrorCode.INVALID_CONFIG,
    }
    assert results["old"].error_message == "Topic 'old' already exists."
    assert set(broker.image.topics) == {"old", "good"}


def test_failed_topic_has_no_numbers_configs_or_id(broker, create):
    broker.create("old", [1])
    topic = create(Topic("old", 1, 1))["old"]
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
    assert topic.configs == []
    assert topic.topic_id == bytes(16)


def test_duplicate_name_is_refused_once_and_not_created(broker, create):
    request = CreateTopicsRequest([Topic("t", 1, 1), Topic("u", 1, 1), Topic("t", 2, 1)], 1_000)
    response = broker.ask(handle_create_topics, request, 7)
    assert sorted((topic.name, topic.error_code) for topic in response.topics) == [
        ("t", ErrorCode.INVALID_REQUEST),
        ("u", ErrorCode.NONE),
    ]
    assert set(broker.image.topics) == {"u"}


def test_too_many_partitions_in_all_refuse_every_topic(broker, create):
    results = create(Topic("huge", 10_001, 1), Topic("small", 1, 1))
    assert {topic.error_code for topic in results.values()} == {ErrorCode.POLICY_VIOLATION}
    assert set(results) == {"huge", "small"}
    assert not broker.image.topics


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_timeout_of_zero_creates_nothing(broker, create, timeout_ms):
    topic = create(Topic("t", 1, 1), timeout_ms=timeout_ms)["t"]
    assert topic.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert topic.error_message is None
    assert not broker.image.topics


def test_shortest_timeout_is_enough(broker, create):
    assert create(Topic("t", 1, 1), timeout_ms=1)["t"].error_code == ErrorCode.NONE


def test_empty_request_has_an_empty_response(create):
    assert create(timeout_ms=0) == {}


def test_injected_error_answers_its_topic_and_the_others_are_created(broker, create):
    broker.faults.inject(Fault(api="CreateTopics", topic="t", error="POLICY_VIOLATION", count=2))
    results = create(Topic("t", 1, 1), Topic("u", 1, 1))
    errors = {name: result.error_code for name, result in results.items()}
    assert errors == {"t": ErrorCode.POLICY_VIOLATION, "u": ErrorCode.NONE}
    assert create(Topic("t", 1, 1))["t"].error_code == ErrorCode.POLICY_VIOLATION
    assert set(broker.image.topics) == {"u"}
    assert create(Topic("t", 1, 1))["t"].error_code == ErrorCode.NONE
