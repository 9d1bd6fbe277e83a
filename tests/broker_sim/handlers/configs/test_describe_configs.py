import pytest

from broker_sim.config import TOPIC_CONFIGS, ConfigSource, ConfigType, every_broker_config
from broker_sim.controller import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType
from broker_sim.errors import ErrorCode
from broker_sim.handlers.configs.describe_configs import handle_describe_configs
from broker_sim.protocol.messages import DescribeConfigsRequest

Resource = DescribeConfigsRequest.DescribeConfigsResource
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
OWN, BROKER_SOURCE, CLUSTER, STATIC, DEFAULT = (
    ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    ConfigSource.STATIC_BROKER_CONFIG,
    ConfigSource.DEFAULT_CONFIG,
)
VERSIONS = range(1, 5)


@pytest.fixture
def broker(make_broker):
    """Return broker 1 with retention set on every level, on topic t too."""
    broker = make_broker({"log.retention.ms": "400"})
    broker.create("t", [1], retention_ms="100")
    for name, value in (("1", "200"), ("", "300")):
        broker.active.incremental_alter_configs(
            [(ConfigResource(BROKER, name), [ConfigAlteration("log.retention.ms", AlterOp.SET, value)])]
        )
    return broker


def describe(broker, *resources, version=4, synonyms=True, documentation=False):
    request = DescribeConfigsRequest(list(resources), synonyms, documentation)
    return broker.ask(handle_describe_configs, request, version).results


def configs_of(result):
    assert result.error_code == ErrorCode.NONE
    return {config.name: config for config in result.configs}


def synonyms_of(config):
    return [(s.name, s.value, s.source) for s in config.synonyms]


@pytest.mark.parametrize("version", VERSIONS)
def test_topic_shows_its_own_value_before_the_brokers(broker, version):
    (result,) = describe(broker, Resource(TOPIC, "t", None), version=version)
    config = configs_of(result)["retention.ms"]
    assert (config.value, config.config_source, config.read_only) == ("100", OWN, False)
    assert synonyms_of(config) == [
        ("retention.ms", "100", OWN),
        ("log.retention.ms", "200", BROKER_SOURCE),
        ("log.retention.ms", "300", CLUSTER),
        ("log.retention.ms", "400", STATIC),
        ("log.retention.hours", "168", DEFAULT),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_broker_shows_its_own_value_before_the_clusters(broker, version):
    (result,) = describe(broker, Resource(BROKER, "1", None), version=version)
    config = configs_of(result)["log.retention.ms"]
    assert (config.value, config.config_source, config.read_only) == ("200", BROKER_SOURCE, False)
    assert [source for _, _, source in synonyms_of(config)] == [BROKER_SOURCE, CLUSTER, STATIC, DEFAULT]


@pytest.mark.parametrize("version", VERSIONS)
def test_nameless_broker_shows_what_is_set_for_all_brokers(broker, version):
    (result,) = describe(broker, Resource(BROKER, "", None), version=version)
    configs = configs_of(result)
    assert {name: config.value for name, config in configs.items()} == {
        "log.retention.ms": "300",
        "min.insync.replicas": "1",
    }
    assert synonyms_of(configs["log.retention.ms"]) == [("log.retention.ms", "300", CLUSTER)]


def test_all_public_configs_are_listed_and_internal_ones_are_not(broker):
    topic, of_broker = describe(broker, Resource(TOPIC, "t", None), Resource(BROKER, "1", None))
    for result, definitions in ((topic, TOPIC_CONFIGS), (of_broker, every_broker_config())):
        of_release = (each for each in definitions.values() if each.is_in(broker.release.is_at_least))
        public = {definition.name for definition in of_release if not definition.internal}
        assert configs_of(result).keys() == public


def test_named_configs_only_and_no_names_mean_all(broker):
    some, nothing, everything = describe(
        broker,
        Resource(TOPIC, "t", ["retention.ms", "segment.ms", "unheard.of"]),
        Resource(TOPIC, "t", ["unheard.of"]),
        Resource(TOPIC, "t", []),
    )
    assert configs_of(some).keys() == {"retention.ms", "segment.ms"}
    assert configs_of(nothing) == {}
    assert len(configs_of(everything)) > 20


@pytest.mark.parametrize("version", VERSIONS)
def test_synonyms_are_listed_on_demand_only(broker, version):
    asked = Resource(TOPIC, "t", ["retention.ms"])
    (result,) = describe(broker, asked, version=version, synonyms=False)
    config = configs_of(result)["retention.ms"]
    assert (config.synonyms, config.config_source) == ([], OWN)


@pytest.mark.parametrize("version", VERSIONS)
def test_config_types_are_returned_from_version_3_on(broker, version):
    asked = ["retention.ms", "cleanup.policy", "preallocate", "min.cleanable.dirty.ratio"]
    (result,) = describe(broker, Resource(TOPIC, "t", asked), version=version)
    found = {name: config.config_type for name, config in configs_of(result).items()}
    expected = {
        "retention.ms": ConfigType.LONG,
        "cleanup.policy": ConfigType.LIST,
        "preallocate": ConfigType.BOOLEAN,
        "min.cleanable.dirty.ratio": ConfigType.DOUBLE,
    }
    assert found == (expected if version >= 3 else dict.fromkeys(asked, 0))


@pytest.mark.parametrize("wanted", [True, False])
def test_documentation_is_listed_on_demand_only(broker, wanted):
    asked = Resource(TOPIC, "t", ["retention.ms"])
    (result,) = describe(broker, asked, documentation=wanted)
    expected = TOPIC_CONFIGS["retention.ms"].doc if wanted else None
    assert configs_of(result)["retention.ms"].documentation == expected


def test_config_that_only_the_file_sets_is_read_only(broker):
    asked = Resource(BROKER, "1", ["num.partitions", "log.retention.ms"])
    (result,) = describe(broker, asked)
    read_only = {name: config.read_only for name, config in configs_of(result).items()}
    assert read_only == {"num.partitions": True, "log.retention.ms": False}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("resource", "error_code"),
    [
        (Resource(TOPIC, "u", None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Resource(TOPIC, "b/d", None), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Resource(TOPIC, "", None), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Resource(BROKER, "2", None), ErrorCode.INVALID_REQUEST),
        (Resource(BROKER, "one", None), ErrorCode.INVALID_REQUEST),
        (Resource(8, "", None), ErrorCode.INVALID_REQUEST),
        (Resource(8, "2", None), ErrorCode.INVALID_REQUEST),
        (Resource(16, "", None), ErrorCode.INVALID_REQUEST),
        (Resource(32, "", None), ErrorCode.INVALID_REQUEST),
    ],
)
def test_resource_that_cannot_be_described_fails_alone(broker, version, resource, error_code):
    good = Resource(TOPIC, "t", None)
    failed, described = describe(broker, resource, good, version=version)
    assert (failed.error_code, failed.configs) == (error_code, [])
    assert (failed.resource_type, failed.resource_name) == (resource.resource_type, resource.resource_name)
    unknown_topic = error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (failed.error_message == "") == unknown_topic
    assert described.error_code == ErrorCode.NONE


@pytest.mark.parametrize("unknown_type", [0, 3, 99])
def test_unknown_resource_type_refuses_the_whole_request(broker, unknown_type):
    results = describe(broker, Resource(TOPIC, "t", None), Resource(unknown_type, "x", None))
    assert [(r.resource_name, r.error_code, r.configs) for r in results] == [
        ("t", ErrorCode.INVALID_REQUEST, []),
        ("x", ErrorCode.INVALID_REQUEST, []),
    ]


def test_broker_configs_have_its_listeners_and_its_id(broker):
    (result,) = describe(broker, Resource(BROKER, "1", None))
    configs = configs_of(result)
    assert len(configs) == 350
    static = {"node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9001"}
    static["advertised.listeners"] = static["listeners"]
    for name in ("listeners", "advertised.listeners"):
        assert (configs[name].value, configs[name].config_source) == (static[name], 4)


def test_password_is_sensitive_and_never_returned(make_broker):
    broker = make_broker({"ssl.key.password": "secret"})
    (result,) = describe(broker, Resource(BROKER, "1", ["ssl.key.password"]))
    (config,) = result.configs
    assert (config.is_sensitive, config.value, config.config_type) == (True, None, 9)
    assert [(synonym.value, synonym.source) for synonym in config.synonyms] == [(None, 4)]


def test_groups_subscriptions_and_loggers_are_described(broker):
    group, subscription, loggers = describe(
        broker, Resource(32, "g", None), Resource(16, "m", None), Resource(8, "1", None)
    )
    assert len(group.configs) == 21
    assert configs_of(group)["consumer.session.timeout.ms"].value == "45000"
    assert [(config.name, config.value) for config in subscription.configs] == [
        ("interval.ms", "300000"),
        ("match", ""),
        ("metrics", ""),
    ]
    assert configs_of(loggers)["root"].config_source == 6
    assert configs_of(loggers)["root"].value in {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}


def test_unknown_broker_configuration_is_listed_without_its_value(broker):
    # Seen on Kafka 4.3.1.
    for name in ("1", ""):
        change = [ConfigAlteration("no.such.key", AlterOp.SET, "secret")]
        resource = ConfigResource(BROKER, name)
        ((_, outcome),) = broker.active.incremental_alter_configs([(resource, change)])
        assert outcome.ok
    for name, sources in (("1", [BROKER_SOURCE, CLUSTER]), ("", [CLUSTER])):
        for keys in (None, ["no.such.key"]):
            (result,) = describe(broker, Resource(BROKER, name, keys), documentation=True)
            config = configs_of(result)["no.such.key"]
            assert (config.value, config.config_source, config.documentation) == (None, sources[0], None)
            assert (config.read_only, config.is_sensitive, config.config_type) == (True, True, 0)
            assert synonyms_of(config) == [("no.such.key", None, source) for source in sources]
    (result,) = describe(broker, Resource(BROKER, "1", ["no.such"]))
    assert configs_of(result) == {}
    assert "no.such.key" not in broker.config.with_dynamic({"no.such.key": "1"}).others
