"""What a real Kafka answers to changes of every configuration, and how it describes them afterwards.

Each configuration that Kafka knows is set: of a topic, a group, a subscription, a broker, all brokers, one listener and
one mechanism, with quotas of clients and the level of a logger; then everything is described, deleted and described
again. `python -m tests.broker_sim.handlers.configs.kafka_configs` records it from local Java processes: a line has a
step, its subject, and what came of it.
"""

import json
import socket
import time
from itertools import count
from pathlib import Path
from typing import NamedTuple

from broker_sim.config import ConfigSource, ConfigType, every_broker_config
from broker_sim.config.definition import Between, ListOf, OneOf, to_text
from broker_sim.config.resource_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from broker_sim.config.server_configs import REPLICATION_QUOTA_CONFIGS
from broker_sim.config.topic_config import TOPIC_CONFIGS
from broker_sim.controller.requests import AlterOp, ConfigResourceType
from broker_sim.errors import ConfigError, ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.protocol.release import find_release

RECORD = Path(__file__).parents[1] / "recorded" / "configs_4_4_0.jsonl"
ANSWER_S = 30
LOGGER = 8
LISTENER = "listener.name.external."
PRINCIPALS = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
PLAIN_USERS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b";'
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"

STATIC = {
    "log.retention.hours": "100",
    "log.retention.minutes": "6000",
    "log.roll.hours": "50",
    "log.cleaner.backoff.ms": "14000",
    "ssl.key.password": "secret",
    "delegation.token.secret.key": "secret",
    "log.initial.task.delay.ms": "20000",
    f"{LISTENER}connections.max.reauth.ms": "5000",
    f"{LISTENER}max.connections": "900",
    f"{LISTENER}plain.connections.max.reauth.ms": "6000",
    f"{LISTENER}plain.sasl.jaas.config": PLAIN_USERS,
    f"{LISTENER}principal.builder.class": PRINCIPALS,
    f"{LISTENER}sasl.enabled.mechanisms": "PLAIN",
    f"{LISTENER}ssl.client.auth": "required",
    f"{LISTENER}ssl.keystore.password": "secret",
}
"""Configurations of every broker's file."""

VALUES = {
    "principal.builder.class": PRINCIPALS,
    "sasl.jaas.config": PLAIN_USERS,
    "share.auto.offset.reset": "by_duration:PT1H",
    "match": "client_id=a.*",
    "metrics": "org.apache.kafka.producer,org.apache.kafka.consumer",
    "leader.replication.throttled.replicas": "0:1",
    "follower.replication.throttled.replicas": "*",
    "interval.ms": "1000",
    "streams.assignor.name": "sticky",
    "streams.rack.aware.assignment.tags": "zone,rack",
    "message.timestamp.type": "LogAppendTime",
    "log.message.timestamp.type": "LogAppendTime",
    "cleanup.policy": "compact,delete",
    "log.cleanup.policy": "compact,delete",
    "compression.type": "zstd",
    "sasl.oauthbearer.assertion.algorithm": "x",
}
"""Values where the next number or another word would not do."""

OF_ONE_LISTENER = {
    f"{LISTENER}plain.connections.max.reauth.ms": "7000",
    f"{LISTENER}plain.sasl.jaas.config": PLAIN_USERS,
    f"{LISTENER}plain.sasl.login.callback.handler.class": PRINCIPALS,
    f"{LISTENER}plain.sasl.login.class": PRINCIPALS,
    f"{LISTENER}plain.sasl.server.callback.handler.class": PRINCIPALS,
    f"{LISTENER}scram-sha-256.sasl.jaas.config": SCRAM_LOGIN,
    f"{LISTENER}PLAIN.sasl.jaas.config": "not a line of JAAS",
    f"{LISTENER}plain.sasl.enabled.mechanisms": "PLAIN",
    f"{LISTENER}no.such.key": "1",
    "listener.name.EXTERNAL.max.connections": "77",
    "listener.name.nobody.max.connections": "78",
    "listener.name.nobody.plain.sasl.jaas.config": PLAIN_USERS,
    "listener.name.external": "1",
    "no.such.key": "1",
}
"""Configurations that have a listener and a mechanism in their names, or are not known."""

TIERED_TRIES = {
    "remote.storage.enable": ("true", "maybe"),
    "remote.log.copy.disable": ("maybe", "true"),
    "remote.log.delete.on.disable": ("maybe", "true"),
    "local.retention.ms": ("-3", "-1", "9223372036854775807", "7"),
    "local.retention.bytes": ("-3", "-1", "9223372036854775807", "7"),
    "remote.copy.lag.ms": ("-2", "-1", "9223372036854775807", "7"),
    "remote.copy.lag.bytes": ("-2", "-1", "9223372036854775807", "7"),
}
"""Further values of a topic's configurations of tiered storage, which the brokers do not have."""

MASKED = frozenset(
    {
        "advertised.listeners",
        "controller.listener.names",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dirs",
        "node.id",
        "process.roles",
        "replica.fetch.backoff.ms",
    }
)
"""Configurations that have other values on another cluster: nothing but their place and type is recorded."""


class Resource(NamedTuple):
    """A resource that has configurations; `label` stands for it in the record."""

    label: str
    type: int
    name: str


TOPIC = Resource("topic", ConfigResourceType.TOPIC, "t")
GROUP = Resource("group", ConfigResourceType.GROUP, "g")
METRICS = Resource("client-metrics", ConfigResourceType.CLIENT_METRICS, "m")
BROKER = Resource("broker", ConfigResourceType.BROKER, "1")
CLUSTER = Resource("cluster", ConfigResourceType.BROKER, "")
ROOT = Resource("logger", LOGGER, "1")
RESOURCES = (TOPIC, GROUP, METRICS, BROKER, CLUSTER)

ENTITIES = (
    {"user": "u"},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
    {"user": "u", "client-id": "c"},
    {"user": "u", "client-id": None},
    {"user": None, "client-id": None},
    {"ip": "127.0.0.9"},
    {"ip": None},
)
QUOTAS = {
    "producer_byte_rate": 1e9,
    "consumer_byte_rate": 2e9,
    "request_percentage": 99.5,
    "controller_mutation_rate": 1e6,
    "connection_creation_rate": 1000.0,
}


def changes(release):
    """Return each configuration of the release that is set: its resource, name and value."""
    dynamic = {**every_broker_config(), **REPLICATION_QUOTA_CONFIGS}
    for resource, definitions in (
        (TOPIC, TOPIC_CONFIGS),
        (GROUP, GROUP_CONFIGS),
        (METRICS, CLIENT_METRICS_CONFIGS),
        (CLUSTER, dynamic),
        (BROKER, dynamic),
    ):
        for name in sorted(definitions):
            if definitions[name].is_in(release.is_at_least):
                yield resource, name, other_value(definitions[name])
    for name in sorted(name for name in dynamic if dynamic[name].is_in(release.is_at_least)):
        if name.startswith(("max.connection", "principal.", "sasl.", "ssl.", "connections.", "log.retention")):
            yield BROKER, LISTENER + name, other_value(dynamic[name])
    for resource in (CLUSTER, BROKER):
        for name, value in OF_ONE_LISTENER.items():
            yield resource, name, value


def other_value(definition):
    """Return a text for a configuration that is not its default, where there is one that is allowed."""
    if definition.name in VALUES:
        return VALUES[definition.name]
    default, kind, limits = definition.default, definition.type, definition.validator
    if definition.name in GROUP_CONFIGS and default is None:
        of_broker = every_broker_config()[f"group.{definition.name}"]
        default, limits = of_broker.default, of_broker.validator
    if kind is ConfigType.BOOLEAN:
        return to_text(str(default).lower() != "true")
    if isinstance(limits, OneOf | ListOf) and limits.words:
        return next(word for word in limits.words if word and word != to_text(default))
    if kind in {ConfigType.INT, ConfigType.LONG, ConfigType.SHORT, ConfigType.DOUBLE}:
        number = 7 if default is None else definition.parse(str(default))
        for other in (number + 1, number - 1):
            try:
                if isinstance(limits, Between):
                    limits(definition.name, other)
                definition.parse(str(other))
            except ConfigError:
                continue
            return to_text(other)
        return to_text(number)
    return {ConfigType.PASSWORD: "secret", ConfigType.LIST: "a,b"}.get(kind, "x")


# -- requests -------------------------------------------------------------------------------------


def alter(resource, name, value, op=AlterOp.SET):
    """Return the request that changes one configuration."""
    request = messages.IncrementalAlterConfigsRequest
    config = request.AlterableConfig(name, op, value)
    return request([request.AlterConfigsResource(resource.type, resource.name, [config])])


def describe(resource, names=None):
    """Return the request that describes a resource, with synonyms and documentation."""
    request = messages.DescribeConfigsRequest
    return request([request.DescribeConfigsResource(resource.type, resource.name, names)], True, True)


def alter_quotas(entity, remove=False):
    """Return the request that sets all quotas that an entity may have, or removes them."""
    request = messages.AlterClientQuotasRequest
    names = [name for name in QUOTAS if (name == "connection_creation_rate") is ("ip" in entity)]
    parts = [request.EntityData(kind, name) for kind, name in entity.items()]
    return request([request.EntryData(parts, [request.OpData(name, QUOTAS[name], remove) for name in names])])


# -- the record -----------------------------------------------------------------------------------


def play(ask, settle, release):
    """Yield the lines of the record of a release.

    `ask(request, version)` answers, `settle()` waits until all brokers know all.
    """
    create = messages.CreateTopicsRequest
    ask(create([create.CreatableTopic("t", 1, 1)], 30_000), 7)
    settle()
    yield from (each for resource in RESOURCES for each in described(ask, "before", resource))
    present = []
    for resource, name, value in changes(release):
        (outcome,) = ask(alter(resource, name, value), 1).responses
        error = ErrorCode(outcome.error_code).name
        yield ["set", resource.label, name, value, error, outcome.error_message]
        if outcome.error_code == ErrorCode.NONE:
            present.append((resource, name))
    yield from tried(ask, release)
    for entity in ENTITIES:
        (entry,) = ask(alter_quotas(entity), 1).entries
        yield ["quota", entity, ErrorCode(entry.error_code).name, entry.error_message]
    (outcome,) = ask(alter(ROOT, "root", "ERROR"), 1).responses
    yield ["set", ROOT.label, "root", "ERROR", ErrorCode(outcome.error_code).name, outcome.error_message]
    settle()
    for resource in RESOURCES:
        yield from described(ask, "after", resource)
    yield from described(ask, "after", ROOT, ["root"])
    yield from described(ask, "some", BROKER, ["no.such.key", f"{LISTENER}max.connections", "log.retention.ms"])
    yield from listed(ask, "after")
    for resource, name in present:
        (outcome,) = ask(alter(resource, name, None, AlterOp.DELETE), 1).responses
        if outcome.error_code != ErrorCode.NONE:
            yield ["delete", resource.label, name, ErrorCode(outcome.error_code).name, outcome.error_message]
    for entity in ENTITIES:
        ask(alter_quotas(entity, remove=True), 1)
    settle()
    for resource in RESOURCES:
        yield from described(ask, "deleted", resource)
    yield from listed(ask, "deleted")


def tried(ask, release):
    """Yield a line for each further value of a topic's configurations."""
    for name, values in TIERED_TRIES.items():
        for value in values if TOPIC_CONFIGS[name].is_in(release.is_at_least) else ():
            (outcome,) = ask(alter(TOPIC, name, value), 1).responses
            yield ["try", TOPIC.label, f"{name}={value}", ErrorCode(outcome.error_code).name, outcome.error_message]


def described(ask, step, resource, names=None):
    """Yield a line for each entry of a resource, in the order of the answer."""
    (result,) = ask(describe(resource, names), 4).results
    if result.error_code:
        yield [step, resource.label, ErrorCode(result.error_code).name, result.error_message]
    for config in result.configs:
        line = [step, resource.label, config.name, ConfigType(config.config_type).name]
        if config.name not in MASKED:
            line += [
                config.value,
                ConfigSource(config.config_source).name,
                "read-only" if config.read_only else "",
                "sensitive" if config.is_sensitive else "",
                "null" if config.documentation is None else "text" if config.documentation else "",
                [[one.name, one.value, ConfigSource(one.source).name] for one in config.synonyms],
            ]
        yield line


def listed(ask, step):
    """Yield what there is: quotas of clients, and resources that have configurations."""
    entries = ask(messages.DescribeClientQuotasRequest([], False), 1).entries or []
    for entry in entries:
        entity = {part.entity_type: part.entity_name for part in entry.entity}
        yield [step, "quotas", entity, {value.key: value.value for value in entry.values}]
    for resource in ask(messages.ListConfigResourcesRequest([]), 1).config_resources:
        yield [step, "resource", resource.resource_type, resource.resource_name]


def recorded():
    """Return the recorded lines."""
    return [json.loads(line) for line in RECORD.read_text().splitlines()]


def asker(address):
    """Return a function that asks a broker, on one connection."""
    connection = socket.create_connection(address, ANSWER_S)
    answers = connection.makefile("rb")
    numbers = count(1)

    def ask(request, version):
        api = ApiKey(request.API_KEY)
        header = RequestHeader(api, version, next(numbers), "configs")
        connection.sendall(b"".join(encode_request(header, request)))
        frame = answers.read(int.from_bytes(answers.read(4), "big"))
        return decode_response(api, version, frame)[1]

    return ask


if __name__ == "__main__":
    from broker_sim_integration.reference.clusters.jvm import JvmCluster

    with JvmCluster(STATIC) as cluster:
        host, port = cluster.address(1).split(":")
        lines = list(play(asker((host, int(port))), lambda: time.sleep(3), find_release()))
        RECORD.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
