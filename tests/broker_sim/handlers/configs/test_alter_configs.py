import pytest

from broker_sim.controller import ConfigResourceType
from broker_sim.errors import ErrorCode
from broker_sim.handlers.configs.alter_configs import handle_alter_configs
from broker_sim.protocol.messages import AlterConfigsRequest

Resource = AlterConfigsRequest.AlterConfigsResource
Config = AlterConfigsRequest.AlterableConfig
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
VERSIONS = range(3)


@pytest.fixture
def alter(broker):
    broker.create("t", [1], retention_ms="100")

    def ask(*resources, version=2, validate_only=False):
        request = AlterConfigsRequest(list(resources), validate_only)
        responses = broker.ask(handle_alter_configs, request, version).responses
        asked = [(r.resource_type, r.resource_name) for r in resources]
        assert [(r.resource_type, r.resource_name) for r in responses] == asked
        return [(r.error_code, r.error_message) for r in responses]

    return ask


@pytest.mark.parametrize("version", VERSIONS)
def test_configs_that_are_not_given_are_dropped(broker, alter, version):
    resource = Resource(TOPIC, "t", [Config("segment.ms", "7000")])
    assert alter(resource, version=version) == [(ErrorCode.NONE, None)]
    assert broker.image.topics["t"].configs == {"segment.ms": "7000"}


@pytest.mark.parametrize("version", VERSIONS)
def test_own_broker_can_be_changed(broker, alter, version):
    resource = Resource(BROKER, "1", [Config("log.retention.ms", "200")])
    assert alter(resource, version=version) == [(ErrorCode.NONE, None)]
    assert broker.image.dynamic_broker_configs(1) == {"log.retention.ms": "200"}


def test_validate_only_changes_nothing(broker, alter):
    before = broker.image
    assert alter(Resource(TOPIC, "t", []), validate_only=True) == [(ErrorCode.NONE, None)]
    assert broker.image is before


@pytest.mark.parametrize(
    ("resource", "error_code"),
    [
        (Resource(BROKER, "2", []), ErrorCode.INVALID_REQUEST),
        (Resource(8, "1", []), ErrorCode.INVALID_REQUEST),
        (Resource(TOPIC, "u", []), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Resource(TOPIC, "t", [Config("retention.ms", None)]), ErrorCode.INVALID_REQUEST),
        (Resource(TOPIC, "t", [Config("retention.ms", "x")]), ErrorCode.INVALID_CONFIG),
        (Resource(TOPIC, "t", [Config("segment.ms", "1"), Config("segment.ms", "2")]), ErrorCode.INVALID_REQUEST),
        # It would drop the cluster's min.insync.replicas, which eligible leader replicas need.
        (Resource(BROKER, "", []), ErrorCode.INVALID_CONFIG),
    ],
)
def test_refused_resource_fails_alone(broker, alter, resource, error_code):
    good = Resource(BROKER, "1", [Config("log.retention.ms", "200")])
    results = alter(resource, good)
    assert [code for code, _ in results] == [error_code, ErrorCode.NONE]
    assert results[0][1]
    assert broker.image.topics["t"].configs == {"retention.ms": "100"}


def test_resource_that_comes_twice_is_refused_twice(broker, alter):
    refused = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert alter(Resource(TOPIC, "t", []), Resource(TOPIC, "t", [])) == [refused, refused]
    assert broker.image.topics["t"].configs == {"retention.ms": "100"}


def test_configs_of_groups_and_subscriptions_are_replaced(broker, alter):
    group, subscription = ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS
    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    ok = [(ErrorCode.NONE, None)]
    assert alter(Resource(group, "g", [Config(session, "50000")])) == ok
    assert alter(Resource(group, "g", [Config(heartbeat, "6000")])) == ok
    assert broker.image.configs_of_resource(group, "g") == {heartbeat: "6000"}
    assert alter(Resource(subscription, "s", [Config("interval.ms", "200")])) == ok
    assert alter(Resource(subscription, "s", [])) == ok
    assert broker.image.configs_of_resource(subscription, "s") == {}


def test_loggers_are_an_unknown_type(alter):
    (outcome,) = alter(Resource(8, "1", [Config("root", "INFO")]))
    assert outcome == (ErrorCode.INVALID_REQUEST, "Unknown resource type 8")
