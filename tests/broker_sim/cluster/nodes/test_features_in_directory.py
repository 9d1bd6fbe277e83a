"""The features of a data directory that an older, or a newer, cluster has written.

Seen with Kafka 4.3.1 on directories that were formatted for 3.9 and 4.0: both are opened at their levels, with their
topics, groups, offsets and records. At those of 3.9 a consumer of the consumer protocol gets nothing, until
`kafka-features.sh upgrade --release-version 4.3` has taken all features up, `kraft.version` among them; they stay so
after a restart. A directory with `metadata.version` 31 ends the process:
"this controller only supports versions 7-30".
"""

from dataclasses import replace

import pytest

from broker_sim import ConfigError
from broker_sim.controller import DEFAULT_FEATURES, MetadataStore, initial_features
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.release import find_release, newest_release
from tests.broker_sim.cluster.nodes.group_client import APP, TOPIC, Client, opened

NEWEST = newest_release().name
RECORDS = 3
UPGRADED = {**DEFAULT_FEATURES, "kraft.version": 1}
UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION
Beat = messages.ConsumerGroupHeartbeatRequest
Update = messages.UpdateFeaturesRequest


def written(directory, release):
    """Write what every release can: records, and the offset of a group."""
    with opened(directory, topics=[f"{TOPIC}:1:1", "in:2:1"], as_version=release) as cluster:
        for number in range(RECORDS):
            cluster.produce(TOPIC, str(number))
        with Client(cluster) as client:
            client.commit(-1, 2, member="")


def features(client):
    """Return the finalized levels as the broker tells them."""
    answer = client.ask(messages.ApiVersionsRequest("test", "1"), 4)
    return {one.name: one.max_version_level for one in answer.finalized_features}


def answers(client):
    """Return what the first heartbeats of three kinds of groups are answered, and a description."""
    streams = messages.StreamsGroupHeartbeatRequest
    topology = streams.Topology(0, [streams.Subtopology("0", ["in"])])
    (described,) = client.ask(messages.ConsumerGroupDescribeRequest(["consumers"]), 1).groups
    return {
        "consumer": client.ask(
            Beat("consumers", "one", 0, None, None, 60_000, [TOPIC], topic_partitions=[]), 1
        ).error_code,
        "described": described.error_code,
        "share": client.beat(0).error_code,
        "streams": client.ask(
            streams(
                "another",
                "one",
                0,
                rebalance_timeout_ms=60_000,
                topology=topology,
                process_id="process",
                active_tasks=[],
                standby_tasks=[],
                warmup_tasks=[],
            ),
            0,
        ).error_code,
    }


def upgrade(client, levels):
    """Upgrade as `kafka-features.sh upgrade --release-version 4.3` does."""
    keys = [Update.FeatureUpdateKey(name, level, upgrade_type=1) for name, level in levels.items()]
    return client.ask(Update(60_000, keys), 2)


@pytest.mark.parametrize(("release", "has_consumer_protocol"), [("3.9", False), ("4.0", True)])
def test_older_cluster_is_opened_as_it_is_and_upgraded(tmp_path, release, has_consumer_protocol):
    written(tmp_path, release)
    with opened(tmp_path) as cluster, Client(cluster) as client:
        assert features(client) == initial_features(find_release(release))
        assert len(cluster.records(TOPIC)) == RECORDS
        assert client.committed() == 2
        assert answers(client) == {
            "consumer": ErrorCode.NONE if has_consumer_protocol else UNSUPPORTED,
            "described": ErrorCode.GROUP_ID_NOT_FOUND if has_consumer_protocol else UNSUPPORTED,
            "share": UNSUPPORTED,
            "streams": UNSUPPORTED,
        }
        assert upgrade(client, UPGRADED).error_code == ErrorCode.NONE
        assert features(client) == UPGRADED
        cluster.set_group_configs("billing", {"share.auto.offset.reset": "earliest"})
        client.join()
        assert client.fetch(0, max_wait_ms=60_000) == [(0, RECORDS - 1, 1)]
        client.join_app(group="tasks")
    with opened(tmp_path) as cluster, Client(cluster) as client:
        assert features(client) == UPGRADED
        assert UNSUPPORTED not in answers(client).values()
        assert {group.id for group in cluster.groups()} >= {APP, "billing", "tasks"}
        assert len(cluster.records(TOPIC)) == RECORDS
        assert client.committed() == 2


@pytest.mark.parametrize(
    ("name", "level", "why"),
    [
        ("metadata.version", 34, "support 7-33"),
        ("metadata.version", 6, "support 7-33"),
        ("share.version", 3, "support 0-2"),
        ("tea.version", 1, "do not support it"),
    ],
)
def test_cluster_with_an_unknown_level_is_refused_and_left_as_it_is(tmp_path, name, level, why):
    written(tmp_path, NEWEST)
    path = tmp_path / "controller.metadata"
    store = MetadataStore(path)
    image, next_producer_id, _ = store.load()
    store.begin(replace(image, features={**image.features, name: level}), next_producer_id)
    store.close()
    content = path.read_bytes()
    for _ in range(2):  # the directory is not left locked
        with pytest.raises(ConfigError) as refused, opened(tmp_path, as_version=NEWEST):
            pass
        assert str(refused.value) == (
            f"The cluster in {tmp_path} has {name} {level}, but its brokers {why}: a newer broker-sim has "
            "written it, so upgrade broker-sim, or use another directory"
        )
    assert path.read_bytes() == content


def test_cluster_is_not_opened_by_brokers_of_an_older_release(tmp_path):
    written(tmp_path, "4.0")
    with opened(tmp_path, as_version="4.1") as cluster, Client(cluster) as client:
        refused = upgrade(client, {"metadata.version": 30})
        assert refused.error_message.endswith("only supports versions 7-27")
        assert upgrade(client, {"metadata.version": 27}).error_code == ErrorCode.NONE
    with (
        pytest.raises(ConfigError, match=r"metadata\.version 27, but its brokers support 7-25: .*as_version"),
        opened(tmp_path, as_version="4.0"),
    ):
        pass
