"""Describing and altering configurations. Kafka: ConfigHelper, ConfigurationControlManager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.config import every_broker_config
from broker_sim.protocol import messages
from broker_sim_integration.clients.admin_requests import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    describe_configs,
)
from broker_sim_integration.scenarios.helpers.observe import seen_in, whole_response
from broker_sim_integration.scenarios.helpers.publication import Publication
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

UNORDERED = ("results", "responses")
UNKNOWN_KIND = 99
NO_SUCH_OPERATION = 7
OWN_TO_EACH_CLUSTER = {
    *("advertised.listeners", "broker.id", "controller.listener.names", "controller.quorum.voters"),
    *("inter.broker.listener.name", "listener.security.protocol.map", "listeners", "log.dir"),
    *("log.dirs", "node.id", "process.roles"),
}
BROKER_KEYS = (*sorted(set(every_broker_config()) - OWN_TO_EACH_CLUSTER), "no.such.key")


@scenario(topology="1 partition x 1 replica")
def a_topics_configurations_are_described(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """All of them with value, source, type and synonyms: whole responses of each version."""
    topic = cluster.topics.create([cluster.first], max_message_bytes="2000", cleanup_policy="compact")
    client = cluster.connect(cluster.first)
    for version in range(1, 5):
        for synonyms in (False, True):
            reply = describe_configs(client, (TOPIC, topic.name, None), synonyms=synonyms, version=version)
            yield whole_response(f"synonyms {synonyms}, version {version}", cluster, reply)


@scenario(topology="1 partition x 1 replica")
def single_configurations_are_described_by_name(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Unknown names are left out, an empty list returns none, a repeated name is returned once."""
    topic = cluster.topics.create([cluster.first])
    client = cluster.connect(cluster.first)
    cases: dict[str, tuple[str, ...]] = {
        "known": ("segment.bytes", "retention.ms"),
        "unknown": ("no.such.key", "segment.bytes"),
        "none": (),
        "twice": ("segment.bytes", "segment.bytes"),
    }
    for step, keys in cases.items():
        reply = describe_configs(client, (TOPIC, topic.name, keys), synonyms=True)
        yield whole_response(step, cluster, reply)


@scenario(topology="none")
def a_brokers_configurations_are_described(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each configuration known to the simulator has the value, source, type and synonyms of Kafka."""
    client = cluster.connect(cluster.first)
    for version in (1, 4):
        for name in (str(cluster.first), ""):
            reply = describe_configs(client, (BROKER, name, BROKER_KEYS), synonyms=True, version=version)
            step = f"{'one' if name else 'all'}, version {version}"
            yield whole_response(step, cluster, reply)


@scenario(topology="1 partition x 1 replica")
def resources_that_do_not_exist_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Unknown topics, invalid names, unknown brokers and types get errors; the others are described."""
    topic = cluster.topics.create([cluster.first])
    client = cluster.connect(cluster.first)
    keys = ("segment.bytes",)
    cases = {
        "unknown topic": (TOPIC, cluster.topics.name("unknown"), keys),
        "invalid topic": (TOPIC, "not a name", keys),
        "empty topic": (TOPIC, "", keys),
        "no number": (BROKER, "first", keys),
        "unknown kind": (UNKNOWN_KIND, "x", keys),
        "loggers of nobody": (BROKER_LOGGER, "", keys),
    }
    for step, resource in cases.items():
        yield whole_response(step, cluster, describe_configs(client, resource))
    reply = describe_configs(client, (BROKER, "99", keys))
    yield seen_in("unknown broker", reply, error_code=reply.message.results[0].error_code)
    reply = describe_configs(client, cases["unknown topic"], (TOPIC, topic.name, keys))
    yield whole_response("beside a good one", cluster, reply, unordered=UNORDERED)
    reply = describe_configs(client, (TOPIC, topic.name, keys), (TOPIC, topic.name, None))
    yield seen_in("the same twice", reply, results=len(reply.message.results))


@scenario(topology="1 partition x 1 replica")
def a_change_is_seen_by_those_who_ask(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Set, append, subtract and delete: values and sources after each change."""
    topic = cluster.topics.create([cluster.first])
    client = cluster.connect(cluster.first)
    published = Publication(cluster)
    keys = ("cleanup.policy", "max.message.bytes")
    changes: dict[str, list[tuple[str, int, str | None]]] = {
        "set": [("max.message.bytes", SET, "2000")],
        "set again": [("max.message.bytes", SET, "2000")],
        "appended": [("cleanup.policy", APPEND, "compact")],
        "appended again": [("cleanup.policy", APPEND, "compact")],
        "subtracted": [("cleanup.policy", SUBTRACT, "delete")],
        "subtracted again": [("cleanup.policy", SUBTRACT, "delete")],
        "deleted": [("max.message.bytes", DELETE, None), ("cleanup.policy", DELETE, None)],
        "deleted again": [("max.message.bytes", DELETE, None)],
    }
    for step, change in changes.items():
        yield whole_response(step, cluster, alter(client, (TOPIC, topic.name, change)))
        published.wait()
        reply = describe_configs(client, (TOPIC, topic.name, keys), synonyms=True)
        yield whole_response(f"{step}: described", cluster, reply)


@scenario(topology="1 partition x 1 replica")
def bad_changes_are_refused_with_words(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Unknown keys, bad values, operations of the wrong type, a repeated key, unknown resources."""
    topic = cluster.topics.create([cluster.first])
    client = cluster.connect(cluster.first)
    cases: dict[str, list[tuple[str, int, str | None]]] = {
        "unknown key": [("no.such.key", SET, "1")],
        "no number": [("max.message.bytes", SET, "many")],
        "too small": [("segment.bytes", SET, "13")],
        "unknown policy": [("cleanup.policy", SET, "shred")],
        "null": [("max.message.bytes", SET, None)],
        "appended to a number": [("max.message.bytes", APPEND, "1")],
        "subtracted from a number": [("max.message.bytes", SUBTRACT, "1")],
        "no operation": [("max.message.bytes", NO_SUCH_OPERATION, "1")],
        "key twice": [("max.message.bytes", SET, "1"), ("max.message.bytes", SET, "2")],
        "good and bad": [("max.message.bytes", SET, "3000"), ("segment.bytes", SET, "x")],
        "empty name": [("", SET, "1")],
        "nothing": [],
    }
    for step, changes in cases.items():
        yield whole_response(step, cluster, alter(client, (TOPIC, topic.name, changes)))
    reply = describe_configs(client, (TOPIC, topic.name, ("max.message.bytes",)))
    yield whole_response("unchanged", cluster, reply)


@scenario(topology="1 partition x 1 replica")
def changes_of_strange_resources_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Unknown and invalid topics and brokers, unknown types, a repeated resource."""
    topic = cluster.topics.create([cluster.first])
    client = cluster.connect(cluster.first)
    change: list[tuple[str, int, str | None]] = [("max.message.bytes", SET, "2000")]
    broker_change: list[tuple[str, int, str | None]] = [("message.max.bytes", SET, "2000")]
    cases = {
        "unknown topic": [(TOPIC, cluster.topics.name("unknown"), change)],
        "invalid topic": [(TOPIC, "not a name", change)],
        "empty topic": [(TOPIC, "", change)],
        "no number": [(BROKER, "first", broker_change)],
        "unknown kind": [(UNKNOWN_KIND, "x", change)],
        "twice": [(TOPIC, topic.name, change), (TOPIC, topic.name, change)],
        "one of two": [(TOPIC, cluster.topics.name("unknown"), change), (TOPIC, topic.name, change)],
        "none": [],
    }
    for step, resources in cases.items():
        for version in (0, 1):
            reply = alter(client, *resources, validate_only=True, version=version)
            yield whole_response(f"{step}, version {version}", cluster, reply, unordered=UNORDERED)
    # Kafka's message contains the id of the broker that got the request.
    altered = alter(client, (BROKER, "99", broker_change))
    yield seen_in("unknown broker", altered, error_code=altered.message.responses[0].error_code)


@scenario(topology="none")
def configurations_of_all_brokers_are_changed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A default for all brokers and a value for one: values, sources, synonyms; invalid changes."""
    client = cluster.connect(cluster.first)
    published = Publication(cluster)
    one = str(cluster.first)
    key = "message.max.bytes"
    cluster.on_close(lambda: alter(client, (BROKER, "", [(key, DELETE, None)])))
    cluster.on_close(lambda: alter(client, (BROKER, one, [(key, DELETE, None)])))
    changes: dict[str, tuple[str, tuple[str, int, str | None]]] = {
        "for all": ("", (key, SET, "1100000")),
        "for one": (one, (key, SET, "1200000")),
        "for all deleted": ("", (key, DELETE, None)),
        "for one deleted": (one, (key, DELETE, None)),
    }
    for step, (broker, change) in changes.items():
        yield whole_response(step, cluster, alter(client, (BROKER, broker, [change])))
        published.wait()
        reply = describe_configs(client, (BROKER, one, (key,)), synonyms=True)
        yield whole_response(f"{step}: described", cluster, reply)
    bad: dict[str, tuple[str, tuple[str, int, str | None]]] = {
        "read-only": ("", ("auto.create.topics.enable", SET, "false")),
        "unknown": ("", ("no.such.key", SET, "1")),
        "too small": ("", (key, SET, "-1")),
        "no number": (one, (key, SET, "many")),
        "not for one": (one, ("min.insync.replicas", SET, "2")),
    }
    for step, (broker, change) in bad.items():
        refused = alter(client, (BROKER, broker, [change]), validate_only=True)
        yield whole_response(step, cluster, refused)


@scenario(topology="1 partition x 1 replica")
def the_old_request_replaces_all_configurations(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """AlterConfigs sets the keys in the request and resets the others; a bad value changes nothing."""
    topic = cluster.topics.create([cluster.first], retention_ms="1000")
    client = cluster.connect(cluster.first)
    published = Publication(cluster)
    request = messages.AlterConfigsRequest
    cases: dict[str, dict[str, str | None]] = {
        "two": {"max.message.bytes": "2000", "cleanup.policy": "compact"},
        "one": {"max.message.bytes": "3000"},
        "bad": {"max.message.bytes": "many"},
        "null": {"max.message.bytes": None},
        "unknown": {"no.such.key": "1"},
        "none": {},
    }
    keys = ("max.message.bytes", "cleanup.policy", "retention.ms")
    for version in range(3):
        for step, configs in cases.items():
            changes = [request.AlterableConfig(*config) for config in configs.items()]
            wanted = request([request.AlterConfigsResource(TOPIC, topic.name, changes)])
            reply = client.request(wanted, version, messages.AlterConfigsResponse)
            yield whole_response(f"{step}, version {version}", cluster, reply)
            published.wait()
            described = describe_configs(client, (TOPIC, topic.name, keys))
            yield whole_response(f"{step}, version {version}: described", cluster, described)


@scenario(topology="none")
def groups_and_subscriptions_have_configurations(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A group and a subscription to client metrics have configurations even if they do not exist."""
    client = cluster.connect(cluster.first)
    cases: dict[str, tuple[int, str, tuple[str, ...] | None]] = {
        "group": (GROUP, "unknown", None),
        "group without a name": (GROUP, "", None),
        "subscription": (CLIENT_METRICS, "unknown", None),
        "subscription without a name": (CLIENT_METRICS, "", None),
        "loggers of nobody": (BROKER_LOGGER, "", None),
        "no number": (BROKER_LOGGER, "first", None),
    }
    for step, resource in cases.items():
        reply = describe_configs(client, resource, synonyms=True)
        yield whole_response(step, cluster, reply, unordered=UNORDERED)


@scenario(topology="none")
def threads_change_in_small_steps(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A number of threads may at most be doubled or halved at once; some configurations cannot be changed."""
    client = cluster.connect(cluster.first)
    changes = (
        *(("num.io.threads", value) for value in ("0", "3", "4", "16", "17")),
        *(("log.cleaner.threads", value) for value in ("2", "3")),
        *(("background.threads", value) for value in ("20", "21")),
        ("num.network.threads", "7"),
        ("num.recovery.threads.per.data.dir", "5"),
        ("num.replica.fetchers", "3"),
        ("ssl.keystore.type", "JKS"),
        ("sasl.enabled.mechanisms", "PLAIN"),
        ("advertised.listeners", "PLAINTEXT://localhost:9"),
        ("controller.quorum.voters", "1@localhost:9"),
    )
    for name, value in changes:
        change = (name, SET, value)
        for broker in ("", str(cluster.first)):
            reply = alter(client, (BROKER, broker, [change]), validate_only=True)
            step = f"{name}={value} of {'one' if broker else 'all'}"
            yield whole_response(step, cluster, reply)
