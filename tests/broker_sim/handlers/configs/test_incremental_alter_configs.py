import pytest

from broker_sim.controller import AlterOp, ConfigResourceType
from broker_sim.errors import ErrorCode
from broker_sim.handlers.configs.incremental_alter_configs import handle_incremental_alter_configs
from broker_sim.protocol.messages import IncrementalAlterConfigsRequest

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Config = IncrementalAlterConfigsRequest.AlterableConfig
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
SET, DELETE, APPEND, SUBTRACT = AlterOp
VERSIONS = range(2)


@pytest.fixture
def alter(broker):
    broker.create("t", [1], retention_ms="100", cleanup_policy="compact")

    def ask(*resources, version=1, validate_only=False):
        request = IncrementalAlterConfigsRequest(list(resources), validate_only)
        responses = broker.ask(handle_incremental_alter_configs, request, version).responses
        asked = [(r.resource_type, r.resource_name) for r in resources]
        assert [(r.resource_type, r.resource_name) for r in responses] == asked
        return [(r.error_code, r.error_message) for r in responses]

    return ask


@pytest.mark.parametrize("version", VERSIONS)
def test_each_operation_changes_one_config(broker, alter, version):
    changes = [
        Config("retention.ms", DELETE, None),
        Config("segment.ms", SET, "7000"),
        Config("cleanup.policy", APPEND, "delete"),
    ]
    assert alter(Resource(TOPIC, "t", changes), version=version) == [(ErrorCode.NONE, None)]
    configs = {"cleanup.policy": "compact,delete", "segment.ms": "7000"}
    assert broker.image.topics["t"].configs == configs
    alter(Resource(TOPIC, "t", [Config("cleanup.policy", SUBTRACT, "compact")]), version=version)
    assert broker.image.topics["t"].configs == configs | {"cleanup.policy": "delete"}


@pytest.mark.parametrize("version", VERSIONS)
def test_own_broker_and_all_brokers_can_be_changed(broker, alter, version):
    results = alter(
        Resource(BROKER, "1", [Config("log.retention.ms", SET, "200")]),
        Resource(BROKER, "", [Config("log.retention.ms", SET, "300")]),
        version=version,
    )
    assert results == [(ErrorCode.NONE, None)] * 2
    assert broker.image.dynamic_broker_configs(1) == {"log.retention.ms": "200"}
    assert broker.image.dynamic_cluster_configs()["log.retention.ms"] == "300"


def test_validate_only_changes_nothing_and_answers_the_same(broker, alter):
    before = broker.image
    results = alter(
        Resource(TOPIC, "t", [Config("segment.ms", SET, "7000")]),
        Resource(TOPIC, "u", [Config("segment.ms", SET, "7000")]),
        validate_only=True,
    )
    assert [code for code, _ in results] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert broker.image is before


@pytest.mark.parametrize(
    ("resource", "error_code", "message"),
    [
        (
            Resource(BROKER, "2", [Config("log.retention.ms", SET, "1")]),
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 2",
        ),
        (
            Resource(BROKER, "one", [Config("log.retention.ms", SET, "1")]),
            ErrorCode.INVALID_REQUEST,
            "Node id must be an integer, but it is: one",
        ),
        (Resource(0, "t", []), ErrorCode.INVALID_REQUEST, "Unknown resource type 0"),
        (Resource(99, "t", []), ErrorCode.INVALID_REQUEST, "Unknown resource type 99"),
        (
            Resource(BROKER, "1", [Config("log.retention.ms", 7, "1")]),
            ErrorCode.INVALID_REQUEST,
            "Unknown operations type 7",
        ),
        (
            Resource(BROKER, "1", [Config("num.partitions", SET, "1")]),
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            Resource(TOPIC, "u", [Config("retention.ms", SET, "1")]),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'u' does not exist.",
        ),
        (
            Resource(TOPIC, "t", [Config("retention.ms", SET, None)]),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
    ],
)
def test_refused_resource_fails_alone(broker, alter, resource, error_code, message):
    good = Resource(BROKER, "", [Config("log.retention.ms", SET, "300")])
    assert alter(resource, good) == [(error_code, message), (ErrorCode.NONE, None)]
    assert broker.image.dynamic_cluster_configs()["log.retention.ms"] == "300"
    assert broker.image.dynamic_broker_configs(1) == {}
    assert broker.image.topics["t"].configs["retention.ms"] == "100"


def test_unknown_operation_on_a_topic_is_a_server_error_as_in_kafka(alter):
    ((error_code, _),) = alter(Resource(TOPIC, "t", [Config("retention.ms", 7, "1")]))
    assert error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_bad_value_leaves_the_whole_resource_unchanged(broker, alter):
    changes = [Config("segment.ms", SET, "7000"), Config("retention.ms", SET, "soon")]
    ((error_code, message),) = alter(Resource(TOPIC, "t", changes))
    assert error_code == ErrorCode.INVALID_CONFIG
    assert "retention.ms" in message
    assert "segment.ms" not in broker.image.topics["t"].configs


def test_resource_that_comes_twice_is_refused_twice_and_not_changed(broker, alter):
    twice = Resource(TOPIC, "t", [Config("retention.ms", SET, "1")])
    good = Resource(BROKER, "1", [Config("log.retention.ms", SET, "200")])
    refused = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert alter(twice, good, twice) == [refused, (ErrorCode.NONE, None), refused]
    assert broker.image.topics["t"].configs["retention.ms"] == "100"


def test_resource_that_comes_twice_is_not_changed_though_one_of_the_two_is_valid(broker, alter):
    bad = Resource(BROKER, "1", [Config("log.retention.ms", 7, "1")])
    good = Resource(BROKER, "1", [Config("log.retention.ms", SET, "200")])
    refused = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert alter(bad, good) == [refused, refused]
    assert broker.image.dynamic_broker_configs(1) == {}


def test_config_that_comes_twice_is_refused(alter):
    changes = [Config("retention.ms", SET, "1"), Config("retention.ms", DELETE, None)]
    assert alter(Resource(TOPIC, "t", changes)) == [
        (ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    ]


def test_empty_request_has_an_empty_response(alter):
    assert alter() == []
