"""Kafka's own share consumer, which only Java has, against the simulator and a real Kafka: the outcomes are equal.

The cases are those of `java/ShareConsume.java`, each in a process of its own.
"""

import subprocess
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

SOURCE = Path(__file__).parent / "java" / "ShareConsume.java"
COUNT = 40
TIMEOUT_S = 240
PER_TRANSACTION = 5
SHORT_LOCK_MS, LONG_LOCK_MS = 3_000, 60_000
CONFIGS = {
    "group.share.min.record.lock.duration.ms": str(SHORT_LOCK_MS),
    # A member hears of its assignment with its second heartbeat.
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
}
GROUP_CONFIGS = {
    "committed": {"share.isolation.level": "read_committed"},
    "renew": {"share.record.lock.duration.ms": SHORT_LOCK_MS},
    "stuck": {"share.record.lock.duration.ms": SHORT_LOCK_MS},
    # It gets the records when the connections of who had them are closed, not when the locks are over.
    "killed": {"share.record.lock.duration.ms": LONG_LOCK_MS},
}
ONCE = {offset: [1] for offset in range(COUNT)}
AGAIN = {offset: [1, 2] if offset % 3 == 0 and offset % 5 != 0 else [1] for offset in range(COUNT)}
"""Where each third record is released once, but not each fifth."""
COMMITTED = {
    offset: [1]
    for offset in range(2 * COUNT * (PER_TRANSACTION + 1) // PER_TRANSACTION)
    if offset // (PER_TRANSACTION + 1) % 2 == 0 and offset % (PER_TRANSACTION + 1) != PER_TRANSACTION
}
"""Every other transaction was aborted, and each ends with a marker."""
EXPECTED = {
    "implicit": (ONCE, "0"),
    "explicit": (AGAIN, "0"),
    "record_limit": (ONCE, "0"),
    "renew": (ONCE, "0"),
    "committed": (COMMITTED, "0"),
    "shared": (ONCE, "2 consumers, 0"),
    "stuck": ({offset: [1, 2] for offset in range(COUNT)}, "[accepted]"),
    "killed": ({offset: [2] for offset in range(COUNT)}, "0"),
}
"""Of each case the deliveries of each offset, and what else it has seen."""
IN_SOAK = pytest.mark.soak(part="clients")
_numbers = count(1)


@pytest.fixture(scope="module", params=["simulator", pytest.param("kafka", marks=[IN_SOAK, pytest.mark.real_kafka])])
def cluster(request, run_simulator, run_real_kafka):
    """A simulator and a real Kafka whose locks on records may be short."""
    if request.param == "kafka":
        with run_real_kafka(CONFIGS) as running:
            yield running
    else:
        options = [word for item in CONFIGS.items() for word in ("--config", "=".join(item))]
        with run_simulator(*options) as running:
            yield running


@pytest.fixture
def start(cluster, kafka_class_path):
    """Return a function that starts a case, and ends those that run at the end."""
    java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", kafka_class_path()]
    started = []

    def run(topic, group, case):
        words = [cluster.bootstrap_servers, topic, group, str(COUNT), case]
        process = subprocess.Popen(
            [*java, str(SOURCE), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "case", ["explicit", *(pytest.param(case, marks=IN_SOAK) for case in EXPECTED if case != "explicit")]
)
def test_each_record_is_delivered_until_it_is_acknowledged(cluster, start, alter_group, case):
    number = next(_numbers)
    topic, group = f"share-{number}", f"share-group-{number}"
    configs = {"share.auto.offset.reset": "earliest", **GROUP_CONFIGS.get(case, {})}
    alter_group(cluster.bootstrap_servers, group, configs)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(TIMEOUT_S)
    if case == "killed":
        holder = start(topic, group, "hold")
        assert holder.stdout.readline() == "held\n", holder.communicate()
        holder.kill()
    process = start(topic, group, case)
    printed, failed = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, failed
    deliveries, seen = EXPECTED[case]
    assert printed == f"{deliveries}\t{seen}\n".replace(": ", "=")
