"""Every configuration has the type, default, limits and update mode of Kafka's own definition.

Needs Java and Maven; with REQUIRE_REAL_KAFKA set their absence is a failure.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from broker_sim.config import BROKER_CONFIGS, TOPIC_CONFIG_SYNONYMS, TOPIC_CONFIGS, to_text

pytestmark = pytest.mark.real_kafka

ORACLE = Path(__file__).parent / "java" / "ConfigOracle.java"

LIMITED_HERE_ONLY = {
    "group.consumer.assignors",
    "group.consumer.migration.policy",
    "log.dir",
    "log.dirs",
    "node.id",
    "offsets.topic.compression.codec",
}
"""Kafka checks these in another place, or words the check in another way."""


@pytest.fixture(scope="module")
def kafka():
    """Return Kafka's definitions as `{(kind, name): [type, default, allowed, internal, last]}`."""
    from integration.reference.errors import ReferenceUnavailableError
    from integration.reference.jars import kafka_jars

    give_up = pytest.fail if os.environ.get("REQUIRE_REAL_KAFKA") else pytest.skip
    if shutil.which("java") is None:
        give_up("Java is missing: apt-get install -y --no-install-recommends default-jdk-headless")
    try:
        class_path = f"{kafka_jars()}/*"
    except ReferenceUnavailableError as unavailable:
        give_up(str(unavailable))
    done = subprocess.run(
        ["java", "-cp", class_path, str(ORACLE)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return {(kind, name): rest for kind, name, *rest in rows}


def ours(definition, last):
    default = to_text(definition.default)
    return [
        definition.type.name,
        "null" if default is None else default,
        "null" if definition.validator is None else str(definition.validator),
        str(definition.internal).lower(),
        last,
    ]


@pytest.mark.parametrize("name", sorted(BROKER_CONFIGS))
def test_a_broker_config_is_kafkas(kafka, name):
    definition = BROKER_CONFIGS[name]
    theirs = kafka["broker", name]
    mine = ours(definition, definition.update_mode.value)
    if name in LIMITED_HERE_ONLY:
        theirs[2] = mine[2]
    if name == "node.id":
        theirs[1] = mine[1]  # required there, given by the cluster here
    assert mine == theirs


@pytest.mark.parametrize("name", sorted(TOPIC_CONFIGS))
def test_a_topic_config_is_kafkas(kafka, name):
    synonym = TOPIC_CONFIG_SYNONYMS.get(name, "null")
    assert ours(TOPIC_CONFIGS[name], synonym) == kafka["topic", name]


def test_no_topic_config_is_missing_but_tiered_storage_and_throttles(kafka):
    missing = {name for kind, name in kafka if kind == "topic"} - set(TOPIC_CONFIGS)
    assert all(
        name.startswith(("local.", "remote.")) or name.endswith("throttled.replicas")
        for name in missing
    )
