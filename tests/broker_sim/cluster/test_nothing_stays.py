"""Of groups that were deleted, with their topics and the connections of their members, nothing stays in a broker."""

import gc
from collections import Counter

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.group.share.share_group import ShareGroup
from broker_sim.group.streams.streams_group import StreamsGroup
from broker_sim.metadata.image import TopicState
from broker_sim.network.connection import Connection
from broker_sim.protocol import messages
from broker_sim.share.coordinator.share_group_offset import ShareGroupOffset
from broker_sim.share.partition.acquisition_lock import AcquisitionLockTimerTask
from broker_sim.share.partition.share_partition import SharePartition
from broker_sim.share.session.share_session import ShareSession

ROUNDS = 5
KINDS = (
    AcquisitionLockTimerTask,
    Connection,
    ShareGroup,
    ShareGroupOffset,
    SharePartition,
    ShareSession,
    StreamsGroup,
    TopicState,
)
CONFIGS = {
    "group.share.assignment.interval.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}
ShareBeat = messages.ShareGroupHeartbeatRequest
StreamsBeat = messages.StreamsGroupHeartbeatRequest
Fetch = messages.ShareFetchRequest


class User:
    """A cluster of one broker, and who makes groups on it and deletes them."""

    def __init__(self):
        self.cluster = VirtualCluster(1, configs=CONFIGS)
        self.admin = self.cluster.client()
        find = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["any"])
        self.ask(self.admin, find, 6)
        self.cluster.advance(1_000)  # there is a coordinator now

    def ask(self, client, request, version):
        pending = client.send(1, request, version)
        self.cluster.run_until(lambda: pending.done)
        assert not getattr(pending.response, "error_code", 0), pending.response
        return pending.response

    def share(self, name, *, leaves):
        """Let a member of a share group acquire a record; with `leaves` it ends its session before it goes."""
        self.cluster.create_topic(name, partitions=2, replication_factor=1)
        self.cluster.set_group_configs(name, {"share.auto.offset.reset": "earliest"})
        self.cluster.produce(name, "value", partition=0)
        member = self.cluster.client()
        answer = self.ask(member, ShareBeat(name, "member", 0, None, [name]), 1)
        while not answer.assignment or not answer.assignment.topic_partitions:
            self.cluster.advance(100)
            answer = self.ask(member, ShareBeat(name, "member", answer.member_epoch), 1)
        (assigned,) = answer.assignment.topic_partitions
        asked = [Fetch.FetchPartition(number) for number in assigned.partitions]
        fetch = Fetch(name, "member", 0, 500, topics=[Fetch.FetchTopic(assigned.topic_id, asked)])
        fetch.min_bytes, fetch.max_bytes, fetch.max_records, fetch.batch_size = 1, 100_000, 10, 10
        assert self.ask(member, fetch, 2).responses
        if leaves:
            end = messages.ShareAcknowledgeRequest(name, "member", -1)
            self.ask(member, end, 2)
        self.ask(member, ShareBeat(name, "member", -1), 1)
        self._delete(name, member)

    def stream(self, name):
        """Let a member of a streams group have its tasks, and commit an offset."""
        self.cluster.create_topic(name, partitions=2, replication_factor=1)
        topology = StreamsBeat.Topology(0, [StreamsBeat.Subtopology("0", [name])])
        none = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        join = {"topology": topology, "process_id": "process", "rebalance_timeout_ms": 60_000}
        member = self.cluster.client()
        answer = self.ask(member, StreamsBeat(name, "member", 0, **none, **join), 0)
        while not answer.active_tasks:
            self.cluster.advance(100)
            answer = self.ask(member, StreamsBeat(name, "member", answer.member_epoch, **none), 0)
        commit = messages.OffsetCommitRequest
        partition = commit.OffsetCommitRequestPartition(0, 1)
        topic = commit.OffsetCommitRequestTopic(name, partitions=[partition])
        self.ask(member, commit(name, answer.member_epoch, "member", topics=[topic]), 9)
        self.ask(member, StreamsBeat(name, "member", -1), 0)
        self._delete(name, member)

    def _delete(self, name, member):
        (result,) = self.ask(self.admin, messages.DeleteGroupsRequest([name]), 2).results
        assert not result.error_code
        member.disconnect(1)
        self.cluster.delete_topic(name)


@pytest.fixture
def user():
    user = User()
    yield user
    user.cluster.close()


def alive():
    gc.collect()
    return Counter(type(each) for each in gc.get_objects() if type(each) in KINDS)


@pytest.mark.usefixtures("collects_little")
def test_nothing_stays_of_groups_and_topics_that_are_deleted(user):
    def play(number):
        user.share(f"ends-{number}", leaves=True)
        user.share(f"breaks-{number}", leaves=False)
        user.stream(f"streams-{number}")
        user.cluster.advance(60_000)  # locks and delays of deletions are over

    play(0)
    before = alive()
    for number in range(1, ROUNDS):
        play(number)
    assert alive() == before
