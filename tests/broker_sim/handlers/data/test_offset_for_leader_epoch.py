import pytest

from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults import Fault
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.messages import DeleteRecordsRequest, OffsetForLeaderEpochRequest

UNDEFINED = (-1, -1)
"""The epoch and end offset of an answer that has none."""


class Cluster:
    """Three brokers with one partition "t"-0 on brokers 1 and 2, which moves when it is told to."""

    def __init__(self):
        self.virtual = VirtualCluster(3)
        self.virtual.create_topic("t", 1, 2)
        self.client = self.virtual.client()

    @property
    def state(self):
        return self.virtual.nodes.controller.image.partition(TopicPartition("t", 0))

    def request(self, broker_id, request, version):
        pending = self.client.send(broker_id, request, version)
        self.virtual.run_until(lambda: pending.done)
        return pending.response

    def append(self, count):
        values = [b"v"] * count
        response = self.request(self.state.leader, produce_request(("t", 0), values=values), 9)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    def move_leader(self):
        """Kill the leader, and let it come back as a follower."""
        leader = self.state.leader
        self.virtual.kill(leader)
        self.virtual.run_until(lambda: self.state.leader not in (leader, -1))
        self.virtual.start(leader)
        self.virtual.run_until(lambda: len(self.state.isr) == 2)

    def ask(self, epoch, *, current=-1, at=None, topic="t", partition=0, version=4):
        """Return error, and (epoch, end offset), of the answer about one epoch."""
        asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition, current, epoch)
        request = OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic, [asked])]
        )
        response = self.request(self.state.leader if at is None else at, request, version)
        (told,) = response.topics
        (answer,) = told.partitions
        assert (told.topic, answer.partition) == (topic, partition)
        return answer.error_code, (answer.leader_epoch, answer.end_offset)


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def moved(cluster):
    """Three records of the first epoch, two of the second: the log of a leader that has changed."""
    cluster.first_epoch = cluster.state.leader_epoch
    cluster.append(3)
    cluster.move_leader()
    cluster.second_epoch = cluster.state.leader_epoch
    cluster.append(2)
    assert cluster.second_epoch > cluster.first_epoch
    return cluster


@pytest.mark.parametrize("version", [2, 3, 4])
def test_current_epoch_ends_at_the_end_of_the_log(cluster, version):
    cluster.append(3)
    epoch = cluster.state.leader_epoch
    assert cluster.ask(epoch, version=version) == (ErrorCode.NONE, (epoch, 3))


def test_current_epoch_of_an_empty_log_ends_where_it_begins(cluster):
    epoch = cluster.state.leader_epoch
    assert cluster.ask(epoch) == (ErrorCode.NONE, (epoch, 0))


def test_older_epoch_ends_where_the_next_one_begins(moved):
    assert moved.ask(moved.first_epoch) == (ErrorCode.NONE, (moved.first_epoch, 3))
    assert moved.ask(moved.second_epoch) == (ErrorCode.NONE, (moved.second_epoch, 5))


def test_epoch_without_records_is_answered_by_the_one_before(moved):
    moved.move_leader()
    moved.move_leader()
    moved.append(1)
    skipped = moved.state.leader_epoch - 1
    epochs = [
        entry.epoch
        for entry in moved.virtual.nodes.brokers[moved.state.leader]
        .replica_manager.partitions[TopicPartition("t", 0)]
        .log.leader_epoch_cache.entries
    ]
    assert skipped not in epochs
    assert moved.ask(skipped) == (ErrorCode.NONE, (moved.second_epoch, 5))


def test_epoch_before_the_log_start_ends_at_the_log_start(moved):
    asked = DeleteRecordsRequest.DeleteRecordsPartition(0, 4)
    request = DeleteRecordsRequest(topics=[DeleteRecordsRequest.DeleteRecordsTopic("t", [asked])], timeout_ms=1000)
    moved.request(moved.state.leader, request, 2)
    assert moved.ask(moved.first_epoch) == (ErrorCode.NONE, (moved.first_epoch, 4))


@pytest.mark.parametrize("ahead", [1, 100])
def test_newer_epoch_and_epoch_minus_one_are_undefined(moved, ahead):
    assert moved.ask(moved.second_epoch + ahead) == (ErrorCode.NONE, UNDEFINED)
    assert moved.ask(-1) == (ErrorCode.NONE, UNDEFINED)


def test_client_with_an_older_current_epoch_is_fenced(moved):
    answer = moved.ask(moved.first_epoch, current=moved.first_epoch)
    assert answer == (ErrorCode.FENCED_LEADER_EPOCH, UNDEFINED)


def test_client_with_a_newer_current_epoch_has_to_wait(moved):
    answer = moved.ask(moved.first_epoch, current=moved.second_epoch + 1)
    assert answer == (ErrorCode.UNKNOWN_LEADER_EPOCH, UNDEFINED)


def test_client_with_the_leaders_current_epoch_is_answered(moved):
    answer = moved.ask(moved.first_epoch, current=moved.second_epoch)
    assert answer == (ErrorCode.NONE, (moved.first_epoch, 3))


def test_follower_refuses(moved):
    (follower,) = set(moved.state.replicas) - {moved.state.leader}
    for current in (-1, moved.second_epoch):
        answer = moved.ask(moved.first_epoch, current=current, at=follower)
        assert answer == (ErrorCode.NOT_LEADER_OR_FOLLOWER, UNDEFINED)


def test_follower_checks_the_epoch_before_its_role(moved):
    (follower,) = set(moved.state.replicas) - {moved.state.leader}
    answer = moved.ask(moved.first_epoch, current=moved.first_epoch, at=follower)
    assert answer == (ErrorCode.FENCED_LEADER_EPOCH, UNDEFINED)


def test_broker_without_a_replica_is_not_the_leader(moved):
    (other,) = {1, 2, 3} - set(moved.state.replicas)
    answer = moved.ask(moved.first_epoch, at=other)
    assert answer == (ErrorCode.NOT_LEADER_OR_FOLLOWER, UNDEFINED)


@pytest.mark.parametrize(("topic", "partition"), [("u", 0), ("t", 1), ("t", -1)])
def test_missing_topic_or_partition_is_unknown(moved, topic, partition):
    answer = moved.ask(moved.first_epoch, topic=topic, partition=partition)
    assert answer == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNDEFINED)


def test_partitions_are_answered_in_the_order_of_the_request(cluster):
    cluster.append(3)
    epoch = cluster.state.leader_epoch
    asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[topic("u", [asked(0, -1, epoch)]), topic("t", [asked(7, -1, epoch), asked(0, -1, epoch)])],
    )
    response = cluster.request(cluster.state.leader, request, 4)
    assert [
        (told.topic, answer.partition, answer.error_code, answer.end_offset)
        for told in response.topics
        for answer in told.partitions
    ] == [
        ("u", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("t", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("t", 0, ErrorCode.NONE, 3),
    ]


def test_injected_error_answers_its_partition(cluster):
    cluster.append(3)
    cluster.virtual.nodes.faults.inject(
        Fault(api="OffsetForLeaderEpoch", topic="t", error="UNKNOWN_LEADER_EPOCH", count=1)
    )
    epoch = cluster.state.leader_epoch
    assert cluster.ask(epoch) == (ErrorCode.UNKNOWN_LEADER_EPOCH, UNDEFINED)
    assert cluster.ask(epoch) == (ErrorCode.NONE, (epoch, 3))
