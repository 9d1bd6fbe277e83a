"""Kafka's own share consumer, which only Java has: implicit and explicit acknowledgement, and limited records."""

import subprocess
from pathlib import Path

import pytest

from broker_sim.handlers import ApiTable
from broker_sim.protocol.api_keys import ApiKey

pytestmark = pytest.mark.skipif(
    ApiTable().get(ApiKey.SHARE_GROUP_HEARTBEAT) is None,
    reason="members of share groups are not served yet",
)

SOURCE = Path(__file__).parent / "java" / "ShareConsume.java"
COUNT = 40
TIMEOUT_S = 240
MODES = ("implicit", "explicit", "record_limit")


@pytest.fixture(scope="module")
def deliveries(simulator, kafka_class_path, alter_group):
    """Run all cases in one JVM; return per mode the deliveries of each offset and what a second consumer got."""
    class_path = kafka_class_path()
    topics = {mode: simulator.create_topic() for mode in MODES}
    for mode in MODES:
        alter_group(
            simulator.bootstrap_servers, f"share-{mode}", {"share.auto.offset.reset": "earliest"}
        )
    cases = [f"{topic},share-{mode},{mode}" for mode, topic in topics.items()]
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
    lines = {
        topic: parts for topic, *parts in (line.split("\t") for line in done.stdout.splitlines())
    }
    return {mode: lines[topic] for mode, topic in topics.items()}


def _expected(mode, offset):
    is_released_once = mode == "explicit" and offset % 3 == 0 and offset % 5 != 0
    return [1, 2] if is_released_once else [1]


@pytest.mark.parametrize("mode", MODES)
def test_each_record_is_delivered_until_it_is_acknowledged(deliveries, mode):
    delivered, rest = deliveries[mode]
    expected = {offset: _expected(mode, offset) for offset in range(COUNT)}
    assert delivered == str(expected).replace(": ", "=")
    assert rest == "0"
