"""Kafka's own Java clients, from the jars of the release that the simulator follows."""

import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "java" / "ProduceConsume.java"
COUNT = 50
TIMEOUT_S = 240

CASES = {
    "acks 0": ("0", "none", "false"),
    "acks 1": ("1", "none", "false"),
    "acks all": ("all", "none", "false"),
    "idempotent": ("all", "none", "true"),
    "gzip": ("all", "gzip", "true"),
    "snappy": ("all", "snappy", "true"),
    "lz4": ("all", "lz4", "true"),
    "zstd": ("all", "zstd", "true"),
}


@pytest.fixture(scope="module")
def java_results(simulator, kafka_class_path):
    """Run all cases in one JVM; return per case offsets produced, offsets and values consumed."""
    class_path = kafka_class_path()
    topics = {name: simulator.create_topic() for name in CASES}
    cases = [",".join((topics[name], *settings)) for name, settings in CASES.items()]
    done = subprocess.run(
        [
            "java",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            class_path,
            str(SOURCE),
            simulator.bootstrap_servers,
            str(COUNT),
            *cases,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    by_topic = {topic: [part.split(",") for part in parts] for topic, *parts in lines}
    return {name: by_topic[topic] for name, topic in topics.items()}


@pytest.mark.parametrize("name", CASES)
def test_records_come_back_in_order_with_their_offsets(java_results, name):
    produced, consumed, values = java_results[name]
    offsets = [str(offset) for offset in range(COUNT)]
    assert produced == (["-1"] * COUNT if name == "acks 0" else offsets)
    assert consumed == offsets
    assert values == [f"value-{number}" for number in range(COUNT)]
