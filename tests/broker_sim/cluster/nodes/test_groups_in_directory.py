"""Share groups and streams groups in a data directory, of which all is as a kill of the whole process leaves it.

Some logs have lost their ends, or all of their records, as by a power loss. What a share group does then was seen
on a Kafka 4.3.1 whose files were changed in the same way.
"""

import json
import re
import shutil
import socket

import pytest

from broker_sim import Cluster
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request

GROUP, TOPIC, APP = "billing", "orders", "app"
ACCEPT, RELEASE, REJECT = 1, 2, 3
CONFIGS = {
    "offsets.topic.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.share.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
}
Beat = messages.ShareGroupHeartbeatRequest
StreamsBeat = messages.StreamsGroupHeartbeatRequest
Fetch = messages.ShareFetchRequest
Acknowledge = messages.ShareAcknowledgeRequest
Commit = messages.OffsetCommitRequest
Alter = messages.AlterShareGroupOffsetsRequest


class Client:
    """A connection to the only broker, with one request at a time."""

    def __init__(self, cluster):
        host, _, port = cluster.bootstrap_servers.partition(":")
        self._socket = socket.create_connection((host, int(port)), 60)
        self._stream = self._socket.makefile("rb")
        request = messages.MetadataRequest
        named = request([request.MetadataRequestTopic(name=TOPIC)])
        self.topic_id = self.ask(named, 12).topics[0].topic_id
        find = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        while self.ask(find, 6).coordinators[0].error_code:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stream.close()
        self._socket.close()

    def ask(self, request, version):
        header = RequestHeader(ApiKey(request.API_KEY), version, 1, "test")
        self._socket.sendall(b"".join(encode_request(header, request)))
        size = int.from_bytes(self._stream.read(4), "big")
        frame = memoryview(self._stream.read(size))
        return decode_response(header.api_key, version, frame)[1]

    def beat(self, epoch):
        return self.ask(Beat(GROUP, "member", epoch, None, [TOPIC] if epoch == 0 else None), 1)

    def join(self):
        """Join, and wait until the member has the partition."""
        answer = self.beat(0)
        while not answer.assignment or not answer.assignment.topic_partitions:
            answer = self.beat(answer.member_epoch)

    def leave(self):
        assert not self.beat(-1).error_code

    def join_and_leave(self):
        """Raise the group epoch; return the assignment that the member had."""
        answer = self.beat(0)
        self.leave()
        return answer.assignment.topic_partitions

    def alter(self, offset):
        """Let the group, which must be empty, begin at this offset."""
        partition = Alter.AlterShareGroupOffsetsRequestPartition(0, offset)
        topic = Alter.AlterShareGroupOffsetsRequestTopic(TOPIC, [partition])
        answer = self.ask(Alter(GROUP, [topic]), 0)
        assert not answer.error_code
        assert not answer.responses[0].partitions[0].error_code

    def fetch(self, epoch, max_wait_ms=0):
        """Return what is acquired: first and last offset, and how often it was delivered."""
        return [
            (one.first_offset, one.last_offset, one.delivery_count)
            for partition in self.fetched(epoch, max_wait_ms)
            for one in partition.acquired_records
        ]

    def fetched(self, epoch, max_wait_ms=0):
        """Return the partitions of which the answer tells."""
        topics = [Fetch.FetchTopic(self.topic_id, [Fetch.FetchPartition(0)])] if not epoch else []
        fetch = Fetch(GROUP, "member", epoch, max_wait_ms, topics=topics)
        fetch.min_bytes, fetch.max_bytes, fetch.max_records, fetch.batch_size = 1, 1 << 20, 10, 10
        answer = self.ask(fetch, 2)
        assert not answer.error_code, answer
        return [partition for topic in answer.responses for partition in topic.partitions]

    def acknowledge(self, epoch, *batches):
        batches = [Acknowledge.AcknowledgementBatch(*batch) for batch in batches]
        topic = Acknowledge.AcknowledgeTopic(
            self.topic_id, [Acknowledge.AcknowledgePartition(0, batches)]
        )
        answer = self.ask(Acknowledge(GROUP, "member", epoch, topics=[topic]), 2)
        assert not answer.error_code
        assert not answer.responses[0].partitions[0].error_code

    def join_app(self):
        """Join a streams group; return the member's epoch once it has both tasks."""
        topology = StreamsBeat.Topology(0, [StreamsBeat.Subtopology("0", ["in"])])
        answer = self.beat_app(0, topology)
        while not answer.active_tasks:
            answer = self.beat_app(answer.member_epoch)
        assert [(one.subtopology_id, one.partitions) for one in answer.active_tasks] == [
            ("0", [0, 1])
        ]
        owned = [StreamsBeat.TaskIds("0", [0, 1])]
        return self.beat_app(answer.member_epoch, owned=owned).member_epoch

    def beat_app(self, epoch, topology=None, owned=()):
        beat = StreamsBeat(APP, "instance", epoch, topology=topology, process_id="process")
        beat.rebalance_timeout_ms = 60_000 if epoch == 0 else -1
        if topology is not None or owned:
            beat.active_tasks, beat.standby_tasks, beat.warmup_tasks = list(owned), [], []
        answer = self.ask(beat, 0)
        assert not answer.error_code, answer
        return answer

    def commit(self, epoch, offset):
        partition = Commit.OffsetCommitRequestPartition(0, offset)
        topic = Commit.OffsetCommitRequestTopic("in", partitions=[partition])
        answer = self.ask(Commit(APP, epoch, "instance", topics=[topic]), 9)
        assert not answer.topics[0].partitions[0].error_code

    def committed(self):
        request = messages.OffsetFetchRequest
        topic = request.OffsetFetchRequestTopics("in", partition_indexes=[0])
        asked = request(groups=[request.OffsetFetchRequestGroup(APP, topics=[topic])])
        (group,) = self.ask(asked, 9).groups
        return group.topics[0].partitions[0].committed_offset


def opened(directory, **options):
    return Cluster(1, data_dir=directory, configs=CONFIGS, **options)


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
        assert client.fetch(0, max_wait_ms=60_000) == [(0, 9, 1)]
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
        assert fetched_again(client) == [(3, 4, 2), (6, 6, 2), (7, 9, 1)]


def test_state_whose_last_batch_is_torn_is_that_of_before(directory):
    cut(directory, "__share_group_state")
    with opened(directory) as cluster, Client(cluster) as client:
        assert fetched_again(client) == [(3, 4, 2), (5, 9, 1)]


def test_streams_group_goes_on_in_its_epoch_with_its_offsets(directory, killed):
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
        assert fetched_again(client)[0] == (3, 4, 2)


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
        assert client.fetch(0, max_wait_ms=60_000) == [(4, 9, 1)]


def test_group_that_is_lost_begins_anew(directory):
    lose(directory, "__consumer_offsets")
    with opened(directory) as cluster, Client(cluster) as client:
        assert fetched_again(client) == [(0, 9, 1)]


def test_group_that_is_lost_has_nothing_until_its_epoch_is_that_of_the_state(directory):
    with opened(directory) as cluster, Client(cluster) as client:
        for _ in range(3):
            client.join_and_leave()
        client.alter(4)  # in the state epoch of now
    lose(directory, "__consumer_offsets")
    with opened(directory) as cluster, Client(cluster) as client:
        assert not any(client.join_and_leave() for _ in range(3))
        assert fetched_again(client) == [(0, 9, 1)]


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
        assert client.fetch(1, max_wait_ms=60_000) == [(3, 4, 2), (6, 6, 2), (7, 7, 1)]


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
    rows = re.findall(
        r"^\| offset: .* key: (.*) payload: (.*)$",
        dump(decoder, "--files", str(path)),
        re.MULTILINE,
    )
    assert len(rows) > 2
    types = [int(json.loads(key)["type"]) for key, _ in rows]
    assert all(json.loads(payload) is None or "data" in json.loads(payload) for _, payload in rows)
    assert set(types) <= most_types
    assert set(types) >= most_types & {0, 1, 10, 17}
