"""A cluster of one broker with a data directory, and a client that is in a share group and in a streams group."""

import socket

from broker_sim import Cluster
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from tests.broker_sim.share.named_values import acquired

CONFIGS = {
    "offsets.topic.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.share.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
}
GROUP, TOPIC, APP = "billing", "orders", "app"
Beat = messages.ShareGroupHeartbeatRequest
StreamsBeat = messages.StreamsGroupHeartbeatRequest
Fetch = messages.ShareFetchRequest
Acknowledge = messages.ShareAcknowledgeRequest
Commit = messages.OffsetCommitRequest
Alter = messages.AlterShareGroupOffsetsRequest


def opened(directory, **options):
    return Cluster(1, data_dir=directory, configs=CONFIGS, **options)


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
        """Send a heartbeat of a member of the share group."""
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
        """Return the ranges of records that are acquired."""
        return [
            acquired(one.first_offset, one.last_offset, one.delivery_count)
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
        topic = Acknowledge.AcknowledgeTopic(self.topic_id, [Acknowledge.AcknowledgePartition(0, batches)])
        answer = self.ask(Acknowledge(GROUP, "member", epoch, topics=[topic]), 2)
        assert not answer.error_code
        assert not answer.responses[0].partitions[0].error_code

    def join_app(self, group=APP):
        """Join a streams group; return the member's epoch once it has both tasks."""
        topology = StreamsBeat.Topology(0, [StreamsBeat.Subtopology("0", ["in"])])
        answer = self.beat_app(0, topology, group=group)
        while not answer.active_tasks:
            answer = self.beat_app(answer.member_epoch, group=group)
        assert [(one.subtopology_id, one.partitions) for one in answer.active_tasks] == [("0", [0, 1])]
        owned = [StreamsBeat.TaskIds("0", [0, 1])]
        return self.beat_app(answer.member_epoch, owned=owned, group=group).member_epoch

    def beat_app(self, epoch, topology=None, owned=(), group=APP):
        beat = StreamsBeat(group, "instance", epoch, topology=topology, process_id="process")
        beat.rebalance_timeout_ms = 60_000 if epoch == 0 else -1
        if topology is not None or owned:
            beat.active_tasks, beat.standby_tasks, beat.warmup_tasks = list(owned), [], []
        answer = self.ask(beat, 0)
        assert not answer.error_code, answer
        return answer

    def commit(self, epoch, offset, member="instance"):
        partition = Commit.OffsetCommitRequestPartition(0, offset)
        topic = Commit.OffsetCommitRequestTopic("in", partitions=[partition])
        answer = self.ask(Commit(APP, epoch, member, topics=[topic]), 9)
        assert not answer.topics[0].partitions[0].error_code

    def committed(self):
        request = messages.OffsetFetchRequest
        topic = request.OffsetFetchRequestTopics("in", partition_indexes=[0])
        asked = request(groups=[request.OffsetFetchRequestGroup(APP, topics=[topic])])
        (group,) = self.ask(asked, 9).groups
        return group.topics[0].partitions[0].committed_offset
