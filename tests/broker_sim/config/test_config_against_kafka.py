"""Every configuration has the type, default, limits and update mode of Kafka's own definition.

Needs Java and Maven; with REQUIRE_REAL_KAFKA set their absence is a failure.
"""

import pytest

from broker_sim.config import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIG_SYNONYMS,
    TOPIC_CONFIGS,
    every_broker_config,
    other_configs,
    to_text,
)

pytestmark = pytest.mark.real_kafka

LIMITED_HERE_ONLY = {
    "authorizer.class.name",
    "group.consumer.migration.policy",
    "node.id",
    "offsets.topic.compression.codec",
}
"""Kafka checks these in another place, or words the check in another way."""

OF_THE_AUTHORIZER = {"allow.everyone.if.no.acl.found", "super.users"}
"""Kafka's authorizer reads these itself."""


@pytest.fixture(scope="module")
def kafka(newest_kafka_class_files):
    """Return Kafka's definitions as `{(kind, name): [type, default, allowed, internal, last]}`."""

    from tools.update_other_configs import config_facts

    return {(kind, name): rest for kind, name, *rest in config_facts(newest_kafka_class_files)}


@pytest.fixture(scope="module")
def since(kafka):
    """Return the release that has added each configuration, for those after 4.0."""

    from tools.update_other_configs import since_of

    return since_of([[*key, *rest] for key, rest in kafka.items()])


def ours(definition, last):
    default = to_text(definition.default)
    return [
        definition.type.name,
        "null" if default is None else default,
        "null" if definition.validator is None else str(definition.validator),
        str(definition.internal).lower(),
        last,
    ]


@pytest.mark.parametrize("name", sorted(BROKER_CONFIGS.keys() - OF_THE_AUTHORIZER))
def test_a_broker_config_is_kafkas(kafka, name):
    definition = BROKER_CONFIGS[name]
    theirs = kafka["broker", name]
    mine = ours(definition, definition.update_mode.value)
    if name in LIMITED_HERE_ONLY:
        theirs[2] = mine[2]
    if name == "node.id":
        theirs[1] = mine[1]  # required there, given by the cluster here
    assert mine == theirs


def test_no_broker_config_is_missing_and_the_others_are_as_kafka_has_them(kafka):
    facts = [[*key, *rest] for key, rest in kafka.items()]
    from tools.update_other_configs import ORDER, TARGET, lines_of, names_of

    since = {("broker", name): definition.since for name, definition in other_configs().items() if definition.since}
    assert TARGET.read_text(encoding="utf-8").splitlines() == lines_of(facts, since)
    assert ORDER.read_text(encoding="utf-8").splitlines() == names_of(facts)
    is_internal = {name: rest[3] == "true" for (kind, name), rest in kafka.items() if kind == "broker"}
    ours = {name: definition.internal for name, definition in (BROKER_CONFIGS | other_configs()).items()}
    assert {name: internal for name, internal in ours.items() if name not in OF_THE_AUTHORIZER} == is_internal
    assert list(is_internal.values()).count(False) == 350


@pytest.mark.parametrize("name", sorted(TOPIC_CONFIGS.keys()))
def test_a_topic_config_is_kafkas(kafka, name):
    synonym = TOPIC_CONFIG_SYNONYMS.get(name, "null")
    assert ours(TOPIC_CONFIGS[name], synonym) == kafka["topic", name]


def test_no_topic_config_is_missing(kafka):
    assert {name for kind, name in kafka if kind == "topic"} == set(TOPIC_CONFIGS)


INTERNAL_SEGMENTS = "internal.segment.bytes"
"""An old release may have small segments only by this configuration of 4.1, so it has it in any release here."""


@pytest.mark.soak(part="kafka_classes")
def test_each_configuration_is_known_from_the_release_on_that_has_added_it(since):
    ours = {("broker", name): definition.since for name, definition in every_broker_config().items()}
    ours |= {("topic", name): definition.since for name, definition in TOPIC_CONFIGS.items()}
    ours |= {("group", name): definition.since for name, definition in GROUP_CONFIGS.items()}
    theirs = {key: since.get(key, "") for key in ours if key[1] != INTERNAL_SEGMENTS}
    assert {key: release for key, release in ours.items() if key[1] != INTERNAL_SEGMENTS} == theirs
