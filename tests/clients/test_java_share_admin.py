"""What Kafka's admin client has for share groups, against the simulator and a real Kafka: the outcomes are equal."""

import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "java" / "ShareAdmin.java"
TIMEOUT_S = 240
TOPIC, GROUP = "share-admin", "share-admin-group"
OPERATIONS = "[READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]"
OUTCOMES = f"""\
incrementalAlterConfigs\tnull
incrementalAlterConfigs, a wrong value\tInvalidConfigurationException
unknown group: describeShareGroups\tGroupIdNotFoundException
unknown group: listShareGroupOffsets\t{{}}
unknown group: deleteShareGroupOffsets\tGroupIdNotFoundException
unknown group: deleteShareGroups\tGroupIdNotFoundException
member: describeShareGroups\tStable [member [{TOPIC}-0, {TOPIC}-1]] {OPERATIONS}
member: listGroups\t[Share share Stable]
member: listGroups of type share\t[Share share Stable]
member: listGroups, stable\t[Share share Stable]
member: listGroups, empty\t[]
member: listShareGroupOffsets\t{{{TOPIC}-0=lag 0, {TOPIC}-1=lag 0}}
member: listShareGroupOffsets of some\t{{{TOPIC}-1=lag 0, {TOPIC}-9=none, unknown-0=none}}
member: alterShareGroupOffsets\tGroupNotEmptyException
member: deleteShareGroupOffsets\tGroupNotEmptyException
member: deleteShareGroups\tGroupNotEmptyException
member: describeConsumerGroups\tGroupIdNotFoundException
empty: describeShareGroups\tEmpty [] {OPERATIONS}
empty: alterShareGroupOffsets\tnull
empty: alterShareGroupOffsets, a topic that nobody read\tnull
empty: alterShareGroupOffsets, an unknown topic\tUnknownTopicOrPartitionException
empty: listShareGroupOffsets\t{{{TOPIC}-0=lag 2, {TOPIC}-1=lag 0, {TOPIC}-other-0=lag 0}}
empty: deleteShareGroupOffsets\tnull
empty: deleteShareGroupOffsets, once more\tUnknownTopicOrPartitionException
empty: deleteShareGroupOffsets, an unknown topic\tUnknownTopicOrPartitionException
empty: listShareGroupOffsets\t{{{TOPIC}-0=lag 2, {TOPIC}-1=lag 0}}
empty: deleteShareGroups\tnull
empty: deleteShareGroups, once more\tGroupIdNotFoundException
empty: listGroups\t[]
"""


@pytest.fixture(params=["simulator", pytest.param("real_kafka", marks=pytest.mark.real_kafka)])
def cluster(request):
    """The simulator, then a real Kafka."""
    return request.getfixturevalue(request.param)


@pytest.mark.soak(part="clients")
def test_admin_client_administers_share_groups(cluster, kafka_class_path):
    done = subprocess.run(
        [
            "java",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            kafka_class_path(),
            str(SOURCE),
            cluster.bootstrap_servers,
            TOPIC,
            GROUP,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == OUTCOMES
