"""Claims about changing configurations, as ConfigurationControlManagerTest makes them."""

import pytest

from broker_sim.controller import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType
from broker_sim.errors import ErrorCode

T = ConfigResource(ConfigResourceType.TOPIC, "t")
ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")
BROKER_1 = ConfigResource(ConfigResourceType.BROKER, "1")
OWN = "listener.name.plaintext."


def put(name, value):
    return ConfigAlteration(name, AlterOp.SET, value)


def delete(name):
    return ConfigAlteration(name, AlterOp.DELETE)


@pytest.fixture
def cluster(make_cluster):
    cluster = make_cluster().start(1, 2, 3)
    cluster.create("t", (1, 2, 3), configs={"retention.ms": "5"})
    return cluster


def alter(cluster, resource, *alterations, **options):
    changes = [(resource, alterations)]
    ((_, outcome),) = cluster.controller.incremental_alter_configs(changes, **options)
    return outcome


def topic_configs(cluster):
    return cluster.image.topics["t"].configs


def test_configs_of_a_topic_are_set_and_deleted_one_by_one(cluster):
    assert alter(cluster, T, put("segment.ms", "7"), delete("retention.ms")).ok
    assert topic_configs(cluster) == {"segment.ms": "7"}


def test_validate_only_changes_nothing(cluster):
    before = cluster.image
    assert alter(cluster, T, put("segment.ms", "7"), validate_only=True).ok
    assert cluster.image is before


def test_setting_the_same_values_makes_no_image(cluster):
    before = cluster.image
    assert alter(cluster, T, put("retention.ms", "5"), delete("segment.ms")).ok
    assert cluster.image is before


def test_bad_value_refuses_its_whole_resource_and_no_other(cluster):
    cluster.create("u", (1,))
    u = ConfigResource(ConfigResourceType.TOPIC, "u")
    outcomes = cluster.controller.incremental_alter_configs(
        [(T, [put("segment.ms", "7"), put("retention.ms", "x")]), (u, [put("segment.ms", "8")])]
    )
    assert [outcome.error_code for _, outcome in outcomes] == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert topic_configs(cluster) == {"retention.ms": "5"}
    assert cluster.image.topics["u"].configs == {"segment.ms": "8"}


def test_append_and_subtract_start_at_the_default_of_a_list(cluster):
    append = ConfigAlteration("cleanup.policy", AlterOp.APPEND, "compact,delete")
    assert alter(cluster, T, append).ok
    assert topic_configs(cluster)["cleanup.policy"] == "delete,compact"
    subtract = ConfigAlteration("cleanup.policy", AlterOp.SUBTRACT, "delete,none")
    assert alter(cluster, T, subtract).ok
    assert topic_configs(cluster)["cleanup.policy"] == "compact"


def test_empty_parts_at_the_end_are_not_appended(cluster):
    for change in (",", ",,", "compact,"):
        assert alter(cluster, T, ConfigAlteration("cleanup.policy", AlterOp.APPEND, change)).ok
    assert topic_configs(cluster)["cleanup.policy"] == "delete,compact"


def test_append_extends_the_default_and_not_the_static_value(make_cluster):
    configs = {"log.cleanup.policy": "compact", "sasl.enabled.mechanisms": "PLAIN"}
    cluster = make_cluster(configs).start(1)
    cluster.create("t", (1,))
    for resource, name, change in (
        (T, "cleanup.policy", "delete"),
        (BROKER_1, "log.cleanup.policy", "delete"),
        (BROKER_1, "sasl.enabled.mechanisms", "PLAIN"),
    ):
        assert alter(cluster, resource, ConfigAlteration(name, AlterOp.APPEND, change)).ok
    assert topic_configs(cluster)["cleanup.policy"] == "delete"
    assert cluster.image.broker_configs["1"] == {
        "log.cleanup.policy": "delete",
        "sasl.enabled.mechanisms": "GSSAPI,PLAIN",
    }


@pytest.mark.parametrize(
    ("resource", "alterations", "code", "message"),
    [
        (
            T,
            [ConfigAlteration("retention.ms", AlterOp.APPEND, "1")],
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            BROKER_1,
            [ConfigAlteration("no.such.key", AlterOp.APPEND, "1")],
            ErrorCode.INVALID_CONFIG,
            "Unknown config name: no.such.key",
        ),
        (
            BROKER_1,
            [ConfigAlteration("log.retention.ms", AlterOp.APPEND, "5")],
            ErrorCode.INVALID_CONFIG,
            "Config value append is not allowed for config key: log.retention.ms",
        ),
        (
            BROKER_1,
            [ConfigAlteration("ssl.cipher.suites", AlterOp.APPEND, "a,a")],
            ErrorCode.INVALID_REQUEST,
            "Configuration 'ssl.cipher.suites' values must not be duplicated.",
        ),
        (
            T,
            [ConfigAlteration("cleanup.policy", AlterOp.APPEND, "")],
            ErrorCode.INVALID_CONFIG,
            "Configuration 'cleanup.policy' values must not be empty.",
        ),
        (
            T,
            [put("segment.bytes", "1")],
            ErrorCode.INVALID_CONFIG,
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (T, [put("retention.ms", None)], ErrorCode.INVALID_REQUEST, "Null value not supported for : retention.ms"),
        (
            T,
            [put("retention.ms", "1"), delete("retention.ms")],
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            T,
            [put("compression.type", "x" * 40_000)],
            ErrorCode.INVALID_CONFIG,
            "The configuration value cannot be added because it exceeds the maximum value size",
        ),
        (
            ConfigResource(ConfigResourceType.TOPIC, "unknown"),
            [put("retention.ms", "1")],
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'unknown' does not exist.",
        ),
        (  # a topic that is not there is told after all that is wrong with the change
            ConfigResource(ConfigResourceType.TOPIC, "unknown"),
            [put("segment.bytes", "1")],
            ErrorCode.INVALID_CONFIG,
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (  # and so is a name that no topic can have, but before bad values
            ConfigResource(ConfigResourceType.TOPIC, "a b"),
            [ConfigAlteration("retention.ms", AlterOp.APPEND, "1")],
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            ConfigResource(ConfigResourceType.TOPIC, "a b"),
            [put("segment.bytes", "1")],
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid",
        ),
        (
            ConfigResource(ConfigResourceType.TOPIC, "a b"),
            [put("retention.ms", "1")],
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid",
        ),
        (
            ConfigResource(ConfigResourceType.TOPIC, ""),
            [put("retention.ms", "1")],
            ErrorCode.INVALID_REQUEST,
            "Default topic resources are not allowed.",
        ),
        (
            ConfigResource(ConfigResourceType.BROKER, "one"),
            [put("log.retention.ms", "1")],
            ErrorCode.INVALID_REQUEST,
            "Unable to parse broker name as a base 10 number.",
        ),
        (
            ConfigResource(ConfigResourceType.BROKER, "-1"),
            [put("log.retention.ms", "1")],
            ErrorCode.INVALID_REQUEST,
            "Invalid negative broker ID.",
        ),
        (
            ConfigResource(ConfigResourceType.BROKER, "9"),
            [put("log.retention.ms", "1")],
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Broker ID 9 is not registered.",
        ),
        (
            ALL_BROKERS,
            [put("num.partitions", "3")],
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            ALL_BROKERS,
            [put("log.retention.ms", "x")],
            ErrorCode.INVALID_REQUEST,
            "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
        ),
    ],
)
def test_invalid_change_is_refused(cluster, resource, alterations, code, message):
    before = cluster.image
    outcome = alter(cluster, resource, *alterations)
    assert outcome.error_code is code
    assert outcome.error_message.startswith(message)
    assert cluster.image is before


def test_resource_given_twice_is_refused(cluster):
    outcomes = cluster.controller.incremental_alter_configs(
        [(T, [put("segment.ms", "7")]), (T, [put("segment.ms", "8")])]
    )
    assert [outcome.error_message for _, outcome in outcomes] == ["Each resource must appear at most once."]
    assert topic_configs(cluster) == {"retention.ms": "5"}


def test_configs_are_set_for_all_brokers_or_for_one(cluster):
    assert alter(cluster, ALL_BROKERS, put("log.retention.ms", "1")).ok
    assert alter(cluster, BROKER_1, put("log.retention.ms", "2")).ok
    assert cluster.image.dynamic_cluster_configs()["log.retention.ms"] == "1"
    assert cluster.image.dynamic_broker_configs(1) == {"log.retention.ms": "2"}
    assert alter(cluster, BROKER_1, delete("log.retention.ms")).ok
    assert cluster.image.dynamic_broker_configs(1) == {}


def test_alter_configs_removes_unnamed_configs(cluster):
    ((_, outcome),) = cluster.controller.alter_configs([(T, [("segment.ms", "7")])])
    assert outcome.ok
    assert topic_configs(cluster) == {"segment.ms": "7"}


class TestMinInsyncReplicas:
    """With eligible leader replicas the minimum is set for topics or for the whole cluster."""

    def test_new_cluster_has_the_static_minimum(self, make_cluster):
        cluster = make_cluster({"min.insync.replicas": "2"})
        assert cluster.image.dynamic_cluster_configs() == {"min.insync.replicas": "2"}
        assert make_cluster(elr=False).image.dynamic_cluster_configs() == {}

    def test_minimum_cannot_be_set_for_one_broker_or_removed(self, cluster):
        for resource, alteration, message in (
            (BROKER_1, put("min.insync.replicas", "2"), "Broker-level"),
            (ALL_BROKERS, delete("min.insync.replicas"), "Cluster-level"),
        ):
            outcome = alter(cluster, resource, alteration)
            assert outcome.error_code is ErrorCode.INVALID_CONFIG
            assert outcome.error_message.startswith(f"{message} min.insync.replicas cannot be")

    def test_without_elr_it_can_be_set_for_one_broker(self, make_cluster):
        cluster = make_cluster(elr=False).start(1)
        assert alter(cluster, BROKER_1, put("min.insync.replicas", "2")).ok

    def test_cluster_minimum_is_effective_at_once(self, cluster):
        assert alter(cluster, ALL_BROKERS, put("min.insync.replicas", "3")).ok
        cluster.alter("t", (1, 2))
        assert cluster.partition("t").elr == (3,)

    def test_topic_minimum_wins_over_the_cluster_minimum(self, cluster):
        alter(cluster, ALL_BROKERS, put("min.insync.replicas", "3"))
        alter(cluster, T, put("min.insync.replicas", "1"))
        cluster.alter("t", (1, 2))
        assert cluster.partition("t").elr == ()

    def test_change_of_the_minimum_empties_the_elrs_concerned(self, cluster):
        alter(cluster, ALL_BROKERS, put("min.insync.replicas", "3"))
        cluster.create("u", (1, 2, 3))
        cluster.alter("t", (1, 2))
        cluster.alter("u", (1, 2))
        epoch = cluster.partition("t").partition_epoch
        alter(cluster, T, put("min.insync.replicas", "2"))
        assert cluster.partition("t").elr == ()
        assert cluster.partition("t").partition_epoch == epoch + 1
        assert cluster.partition("u").elr == (3,)
        alter(cluster, ALL_BROKERS, put("min.insync.replicas", "2"))
        assert cluster.partition("u").elr == ()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("num.io.threads", "17", "value should not be greater than double the current value 8"),
        ("num.io.threads", "3", "value should be at least half the current value 8"),
        ("num.io.threads", "0", "Value must be at least 1"),
        ("log.cleaner.threads", "3", "cannot be increased to more than double the current value 1"),
        ("ssl.keystore.type", "JKS", "only per-listener using the listener prefix"),
        ("sasl.enabled.mechanisms", "PLAIN", "broker id must be specified: [sasl.enabled"),
        ("controller.quorum.voters", "x", "Cannot update these configs dynamically"),
        (
            "listener.name.outside.ssl.keystore.key",
            "x",
            "broker id must be specified: [listener.name.outside.ssl.keystore.key]",
        ),
    ],
)
def test_change_of_a_config_without_effect_is_refused_as_by_kafka(cluster, name, value, reason):
    outcome = alter(cluster, ALL_BROKERS, put(name, value))
    assert outcome.error_code == ErrorCode.INVALID_REQUEST
    assert reason in outcome.error_message


def test_unchanged_config_of_a_broker_is_still_published(cluster):
    change = put("listener.name.outside.ssl.keystore.location", "store.pem")
    assert alter(cluster, BROKER_1, change).ok
    before = cluster.image.broker_configs["1"]
    assert alter(cluster, BROKER_1, change).ok
    assert cluster.image.broker_configs["1"] is not before
    assert cluster.image.broker_configs["1"] == before


def test_connections_of_a_listener_are_limited_for_all_brokers(cluster):
    assert alter(cluster, ALL_BROKERS, put("listener.name.outside.max.connections", "9")).ok


def test_threads_are_doubled_step_by_step(cluster):
    for value in ("16", "32", "16"):
        assert alter(cluster, ALL_BROKERS, put("num.io.threads", value)).ok
    assert not alter(cluster, BROKER_1, put("num.io.threads", "4")).ok
    assert alter(cluster, BROKER_1, put("num.io.threads", "8")).ok
    assert alter(cluster, BROKER_1, put("sasl.enabled.mechanisms", "PLAIN")).ok


@pytest.mark.parametrize(
    ("resource", "name", "value", "reason"),
    [
        (ALL_BROKERS, "listeners", "", "Configuration 'listeners' must not be empty."),
        (ALL_BROKERS, "listeners", "foo", "Cannot update these configs at default cluster level"),
        (BROKER_1, "listeners", "foo", "Unable to parse foo to a broker endpoint"),
        (BROKER_1, "listeners", "SSL://:1", "Found PLAINTEXT. The valid options"),
        (BROKER_1, "ssl.cipher.suites", "a,a", "'ssl.cipher.suites' values must not be duplicated."),
        (BROKER_1, f"{OWN}ssl.cipher.suites", "a,a", "'ssl.cipher.suites' values must not be duplicated."),
        (ALL_BROKERS, "log.cleanup.policy", "delete,delete", "values must not be duplicated."),
        (BROKER_1, "cordoned.log.dirs", "/nowhere", "Missing entries : /nowhere"),
        (ALL_BROKERS, "max.connections.per.ip.overrides", "a:x", 'For input string: "x"'),
        (BROKER_1, "metric.reporters", "no.such.Class", "DynamicMetricsReporters"),
        (BROKER_1, "metric.reporters", "a,,b", "'metric.reporters' values must not be empty."),
        (ALL_BROKERS, "max.connections.per.ip", "0", "can be set to zero only if"),
        (ALL_BROKERS, "max.connections", "0", "Invalid max.connections 0"),
        (ALL_BROKERS, f"{OWN}max.connections", "0", "Invalid max.connections 0"),
        (BROKER_1, f"{OWN}max.connection.creation.rate", "0", "Invalid max.connection.creation"),
        (BROKER_1, f"{OWN}max.connections", "x", "Invalid value x for configuration max.connec"),
        (BROKER_1, f"{OWN}max.connections", "-1", "max.connections: Value must be at least 0"),
        (ALL_BROKERS, f"{OWN}max.connections.per.ip", "1", "broker id must be specified"),
        (ALL_BROKERS, "leader.replication.throttled.rate", "-1", "Value must be at least 0"),
        (BROKER_1, "follower.replication.throttled.rate", "x", "Not a number of type LONG"),
    ],
)
def test_what_a_running_broker_refuses_is_refused(cluster, resource, name, value, reason):
    before = cluster.image
    outcome = alter(cluster, resource, put(name, value))
    assert outcome.error_code == ErrorCode.INVALID_REQUEST
    assert reason in outcome.error_message
    assert cluster.image is before


def test_listener_may_be_added_together_with_its_protocol(cluster):
    listeners = put("listeners", "PLAINTEXT://:1,NEW://:2")
    assert not alter(cluster, BROKER_1, listeners).ok
    protocols = put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,NEW:PLAINTEXT")
    assert alter(cluster, BROKER_1, listeners, protocols).ok
