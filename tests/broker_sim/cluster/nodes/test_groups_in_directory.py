"""Share groups and streams groups in a data directory, of which all is as a kill of the whole process leaves it.

Some logs have lost their ends, or all of their records, as by a power loss. What a share group does then was seen
on a Kafka 4.3.1 whose files were changed in the same way.
"""

import json
import re
import shutil

import pytest

from broker_sim.errors import ErrorCode
from tests.broker_sim.cluster.nodes.group_client import APP, GROUP, TOPIC, Client, opened
from tests.broker_sim.share.named_values import acquired

ACCEPT, RELEASE, REJECT = 1, 2, 3


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The files of a cluster in the middle of work, with the epoch of the member of the streams group."""
    directory = tmp_path_factory.mktemp("running") / "data"
    copy = tmp_path_factory.mktemp("killed") / "data"
    topics = [f"{TOPIC}:1:1", "in:2:1"]
    with opened(directory, topics=topics) as cluster, Client(cluster) as client:
        cluster.set_group_configs(GROUP, {"share.auto.offset.reset": "earliest"})
        epoch = client.join_app()
        client.commit(epoch, 7)
        client.commit(epoch, 8)
        client.join()
        for number in range(10):
            cluster.produce(TOPIC, str(number))
        assert client.fetch(0, max_wait_ms=60_000) == [acquired(0, 9)]
        client.acknowledge(1, (0, 2, [ACCEPT]), (3, 4, [RELEASE]))
        client.acknowledge(2, (5, 5, [REJECT]), (6, 6, [RELEASE]))
        shutil.copytree(directory, copy)
    return copy, epoch


@pytest.fixture
def directory(killed, tmp_path):
    return shutil.copytree(killed[0], tmp_path / "data")


def cut(directory, topic):
    """Cut into the last batch of a coordinator's partition."""
    (path,) = directory.glob(f"broker-1/{topic}-0/*.log")
    path.write_bytes(path.read_bytes()[:-3])


def lose(directory, topic):
    """Lose all records of a partition."""
    (path,) = directory.glob(f"broker-1/{topic}-0")
    for file in path.iterdir():
        if file.name != "partition.metadata":
            file.unlink()


def fetched_again(client):
    client.join()
    return client.fetch(0, max_wait_ms=60_000)


def test_what_is_settled_is_not_delivered_again_and_counts_go_on(directory):
    with opened(directory) as cluster, Client(cluster) as client:
        (member,) = cluster.group(GROUP).members
        assert member.id == "member"
        assert fetched_again(client) == [acquired(3, 4, deliveries=2), acquired(6, 6, deliveries=2), acquired(7, 9)]


def test_state_whose_last_batch_is_torn_is_that_of_before(directory):
    cut(directory, "__share_group_state")
    with opened(directory) as cluster, Client(cluster) as client:
        assert fetched_again(client) == [acquired(3, 4, deliveries=2), acquired(5, 9)]


def test_streams_group_continues_in_its_epoch_with_its_offsets(directory, killed):
    _, epoch = killed
    with opened(directory) as cluster, Client(cluster) as client:
        (member,) = cluster.group(APP).members
        assert [(one.topic, one.partition) for one in member.assignment] == [("in", 0), ("in", 1)]
        assert client.beat_app(epoch).member_epoch == epoch
        assert client.committed() == 8


def test_groups_whose_last_record_is_torn_are_as_before(directory, killed):
    _, epoch = killed
    cut(directory, "__consumer_offsets")
    with opened(directory) as cluster, Client(cluster) as client:
        assert client.beat_app(epoch).member_epoch == epoch
        assert client.committed() == 8
        assert fetched_again(client)[0] == acquired(3, 4, deliveries=2)


def test_group_whose_state_is_lost_is_refused_until_its_offsets_are_altered(directory):
    lose(directory, "__share_group_state")
    with opened(directory) as cluster, Client(cluster) as client:
        client.join()
        for epoch in range(3):
            (partition,) = client.fetched(epoch, max_wait_ms=10)
            assert partition.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        client.leave()
        client.alter(4)
        client.join()
        assert client.fetch(0, max_wait_ms=60_000) == [acquired(4, 9)]


def test_group_that_is_lost_begins_anew(directory):
    lose(directory, "__consumer_offsets")
    with opened(directory) as cluster, Client(cluster) as client:
        assert fetched_again(client) == [acquired(0, 9)]


def test_group_that_is_lost_has_nothing_until_its_epoch_is_that_of_the_state(directory):
    with opened(directory) as cluster, Client(cluster) as client:
        for _ in range(3):
            client.join_and_leave()
        client.alter(4)  # in the state epoch of now
    lose(directory, "__consumer_offsets")
    with opened(directory) as cluster, Client(cluster) as client:
        assert not any(client.join_and_leave() for _ in range(3))
        assert fetched_again(client) == [acquired(0, 9)]


def test_new_records_before_the_start_offset_are_not_delivered(directory):
    lose(directory, TOPIC)
    with opened(directory) as cluster, Client(cluster) as client:
        client.join()
        for number in range(2):
            cluster.produce(TOPIC, str(number))
        # The start offset is 3, beyond the end of the log: it is answered at once.
        assert client.fetch(0, max_wait_ms=60_000) == []
        for number in range(2, 8):
            cluster.produce(TOPIC, str(number))
        assert client.fetch(1, max_wait_ms=60_000) == [
            acquired(3, 4, deliveries=2),
            acquired(6, 6, deliveries=2),
            acquired(7, 7),
        ]


@pytest.mark.real_kafka
@pytest.mark.soak(part="kafka_classes")
@pytest.mark.parametrize(
    ("topic", "decoder", "most_types"),
    [
        ("__share_group_state", "--share-group-state-decoder", {0, 1}),
        ("__consumer_offsets", "--offsets-decoder", {1, *range(10, 16), *range(17, 24)}),
    ],
)
def test_kafka_decodes_all_records_of_our_coordinators(killed, dump, topic, decoder, most_types):
    (path,) = killed[0].glob(f"broker-1/{topic}-0/*.log")
    rows = re.findall(r"^\| offset: .* key: (.*) payload: (.*)$", dump(decoder, "--files", str(path)), re.MULTILINE)
    assert len(rows) > 2
    types = [int(json.loads(key)["type"]) for key, _ in rows]
    assert all(json.loads(payload) is None or "data" in json.loads(payload) for _, payload in rows)
    assert set(types) <= most_types
    assert set(types) >= most_types & {0, 1, 10, 17}
