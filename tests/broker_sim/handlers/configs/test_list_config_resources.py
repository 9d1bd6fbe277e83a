import pytest

from broker_sim.controller import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType
from broker_sim.errors import ErrorCode
from broker_sim.handlers.configs.list_config_resources import handle_list_config_resources
from broker_sim.protocol.messages import ListConfigResourcesRequest

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
NAMES = {BROKER: ["1", "2"], LOGGER: ["1", "2"], METRICS: ["m"], GROUP: ["g"]}


def change(broker, kind, name, config, value, op=AlterOp.SET):
    resource = ConfigResource(ConfigResourceType(kind), name)
    (outcome,) = broker.active.incremental_alter_configs([(resource, [ConfigAlteration(config, op, value)])])
    assert outcome[1].error_code == ErrorCode.NONE


@pytest.fixture
def broker(make_broker):
    """Return broker 1 with two topics, a group, a subscription to client metrics and a dead broker."""
    broker = make_broker()
    for name in ("b", "a"):
        broker.create(name, [1])
    change(broker, GROUP, "g", "consumer.session.timeout.ms", "50000")
    change(broker, METRICS, "m", "interval.ms", "1000")
    broker.kill(3)
    return broker


def listed(broker, *types, version=1):
    request = ListConfigResourcesRequest(list(types))
    answer = broker.ask(handle_list_config_resources, request, version)
    assert answer.error_code == ErrorCode.NONE
    found = {}
    for each in answer.config_resources:
        found.setdefault(each.resource_type, []).append(each.resource_name)
    return {kind: sorted(names) for kind, names in found.items()}


@pytest.mark.parametrize("kind", NAMES)
def test_resources_of_one_type_are_listed(broker, kind):
    assert listed(broker, kind) == {kind: NAMES[kind]}


def test_topics_are_listed(broker):
    assert listed(broker, TOPIC) == {TOPIC: ["a", "b"]}


def test_all_types_are_listed_if_none_is_named(broker):
    assert listed(broker) == {TOPIC: ["a", "b"], **NAMES}


def test_the_first_version_lists_subscriptions_to_client_metrics(broker):
    assert listed(broker, version=0) == {METRICS: ["m"]}


def test_resource_without_remaining_configurations_is_not_listed(broker):
    change(broker, GROUP, "g", "consumer.session.timeout.ms", None, AlterOp.DELETE)
    change(broker, METRICS, "m", "interval.ms", None, AlterOp.DELETE)
    assert listed(broker, GROUP, METRICS) == {}


@pytest.mark.parametrize("unknown", [0, 1, 64, -1])
def test_unknown_type_fails_the_request(broker, unknown):
    request = ListConfigResourcesRequest([TOPIC, unknown])
    answer = broker.ask(handle_list_config_resources, request, 1)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
