"""Tests of differences between groups of different Kafka releases."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages

GROUP, MEMBER = "group", "member"
LEAVE = -1


def heartbeat_of_consumers(epoch):
    heartbeat = messages.ConsumerGroupHeartbeatRequest
    return heartbeat(GROUP, MEMBER, epoch, None, None, 60_000, ["t"], topic_partitions=[])


def heartbeat_of_share_group(epoch):
    return messages.ShareGroupHeartbeatRequest(GROUP, MEMBER, epoch, None, ["t"])


def heartbeat_of_streams(epoch):
    heartbeat = messages.StreamsGroupHeartbeatRequest
    if epoch < 0:
        return heartbeat(GROUP, MEMBER, epoch)
    topology = heartbeat.Topology(0, [heartbeat.Subtopology("0", ["t"])])
    tasks = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    return heartbeat(
        GROUP, MEMBER, epoch, rebalance_timeout_ms=60_000, topology=topology, process_id="process", **tasks
    )


KINDS = {
    "consumer": (heartbeat_of_consumers, 1, messages.ConsumerGroupDescribeRequest),
    "share": (heartbeat_of_share_group, 1, messages.ShareGroupDescribeRequest),
    "streams": (heartbeat_of_streams, 0, messages.StreamsGroupDescribeRequest),
}


@pytest.mark.parametrize(("release", "epoch_goes_along"), [("4.3", False), ("4.4", True)])
@pytest.mark.parametrize("kind", KINDS)
def test_last_leave_bumps_assignment_epoch_from_4_4_on(kind, release, epoch_goes_along):
    heartbeat, version, describe = KINDS[kind]
    configs = {"group.streams.initial.rebalance.delay.ms": 0}
    cluster = VirtualCluster(1, topics=["t:1:1"], as_version=release, configs=configs)
    client = cluster.client()

    def ask(request):
        pending = client.send(1, request, version)
        cluster.run_until(lambda: pending.done)
        return pending.response

    def described():
        return ask(describe([GROUP])).groups[0]

    client.send(1, messages.FindCoordinatorRequest(GROUP), 0)  # creates the topic of the groups
    cluster.advance(1_000)
    assert ask(heartbeat(0)).error_code == ErrorCode.NONE
    cluster.advance(1_000)
    assert described().assignment_epoch == described().group_epoch
    before = described().group_epoch
    assert ask(heartbeat(LEAVE)).error_code == ErrorCode.NONE
    assert described().group_epoch == before + 1
    assert described().assignment_epoch == before + epoch_goes_along


def test_transactional_offsets_have_topic_ids_from_version_6_on():
    cluster = VirtualCluster(1, topics=["t:1:1"], as_version="4.4")
    known, unknown = cluster.nodes.controller.image.topics["t"].topic_id, b"u" * 16
    commit = messages.TxnOffsetCommitRequest
    partitions = [commit.TxnOffsetCommitRequestPartition(0, 5)]
    topics = [
        commit.TxnOffsetCommitRequestTopic(topic_id=topic_id, partitions=partitions) for topic_id in (known, unknown)
    ]
    pending = cluster.client().send(1, commit("id", GROUP, 7, 0, topics=topics), 6)
    cluster.run_until(lambda: pending.done)
    errors = {topic.topic_id: topic.partitions[0].error_code for topic in pending.response.topics}
    assert errors == {unknown: ErrorCode.UNKNOWN_TOPIC_ID, known: ErrorCode.COORDINATOR_NOT_AVAILABLE}
