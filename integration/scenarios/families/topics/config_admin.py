"""Configurations described and altered. Kafka: ConfigHelper, ConfigurationControlManager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.config import BROKER_CONFIGS
from broker_sim.protocol import messages
from integration.clients.admin_requests import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    describe_configs,
)
from integration.observations import Observation
from integration.scenarios.helpers.observe import whole_response
from integration.scenarios.helpers.publication import Publication
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.cluster_under_test.cluster_under_test import ClusterUnderTest

UNORDERED = ("results", "responses")
UNKNOWN_KIND = 99
NO_SUCH_OPERATION = 7
OWN_TO_EACH_CLUSTER = {"broker.id", "log.dir", "log.dirs", "node.id"}
BROKER_KEYS = (*sorted(set(BROKER_CONFIGS) - OWN_TO_EACH_CLUSTER), "no.such.key")
"""Kafka has some three hundred more, for features that the simulator does not have."""


@scenario(topology="1 partition x 1 replica")
def a_topics_configurations_are_described(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """All of them with value, source, type and synonyms: whole responses of every version."""
    topic = cluster.topics.create(
        [cluster.first], max_message_bytes="2000", cleanup_policy="compact"
    )
    client = cluster.connect(cluster.first)
    for version in range(1, 5):
        for synonyms in (False, True):
            reply = describe_configs(
                client, (TOPIC, topic.name, None), synonyms=synonyms, version=version
            )
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
    """Every one that the simulator knows has the value, source, type and synonyms of Kafka."""
    client = cluster.connect(cluster.first)
    for version in (1, 4):
        for name in (str(cluster.first), ""):
            reply = describe_configs(
                client, (BROKER, name, BROKER_KEYS), synonyms=True, version=version
            )
            step = f"{'one' if name else 'all'}, version {version}"
            yield whole_response(step, cluster, reply)


@scenario(topology="1 partition x 1 replica")
def resources_that_do_not_exist_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Unknown topics, invalid names, unknown brokers and types; the others are described."""
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
    refused = describe_configs(client, (BROKER, "99", keys)).message.results[0]
    yield Observation("unknown broker", error_code=refused.error_code)
    reply = describe_configs(client, cases["unknown topic"], (TOPIC, topic.name, keys))
    yield whole_response("beside a good one", cluster, reply, unordered=UNORDERED)
    reply = describe_configs(client, (TOPIC, topic.name, keys), (TOPIC, topic.name, None))
    yield Observation("the same twice", fields={"results": len(reply.message.results)})


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
    """Unknown keys, bad values, operations that do not fit, a repeated key, unknown resources."""
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
    """Unknown and invalid topics and brokers, unknown types, one resource twice."""
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
        "one of two": [
            (TOPIC, cluster.topics.name("unknown"), change),
            (TOPIC, topic.name, change),
        ],
        "none": [],
    }
    for step, resources in cases.items():
        for version in (0, 1):
            reply = alter(client, *resources, validate_only=True, version=version)
            yield whole_response(f"{step}, version {version}", cluster, reply, unordered=UNORDERED)
    # Kafka's message contains the number of the broker that was asked.
    (refused,) = alter(client, (BROKER, "99", broker_change)).message.responses
    yield Observation("unknown broker", error_code=refused.error_code)


@scenario(topology="none")
def configurations_of_all_brokers_are_changed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A default for all brokers and a value for one: values, sources, synonyms; bad changes."""
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
    """AlterConfigs sets the keys that it has and resets the others; a bad value changes nothing."""
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
