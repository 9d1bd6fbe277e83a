"""Claims about share groups in a cluster of three brokers: their APIs, their state, and who takes over."""

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages

GROUP = "share"
NONE = ErrorCode.NONE


class User:
    """A client of three brokers, and a member of a share group."""

    def __init__(self):
        self.cluster = VirtualCluster(
            seed=4,
            configs={
                "share.coordinator.state.topic.num.partitions": 3,
                "offsets.topic.num.partitions": 3,
                "group.share.assignment.interval.ms": 0,
            },
        )
        self.cluster.create_topic("t", partitions=2)
        self.client = self.cluster.client()
        self.up = [1, 2, 3]
        self.epoch = 0
        self.assigned = {}

    @property
    def topic_id(self):
        return self.cluster.nodes.controller.image.topics["t"].topic_id

    def ask(self, request, version, broker=None):
        """Ask the group's coordinator, or a broker."""
        pending = self.client.send(broker or self.coordinator(), request, version)
        self.cluster.run_until(lambda: pending.done, 60_000)
        return pending.response

    def coordinator(self):
        request = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        for _ in range(30):
            coordinator = self.ask(request, 6, self.up[0]).coordinators[0]
            if not coordinator.error_code:
                return coordinator.node_id
            self.cluster.advance(500)
        raise AssertionError("no coordinator")

    def beat(self, **fields):
        request = messages.ShareGroupHeartbeatRequest(
            **{
                "group_id": GROUP,
                "member_id": "member",
                "member_epoch": self.epoch,
                "subscribed_topic_names": None if self.epoch else ["t"],
                **fields,
            }
        )
        answer = self.ask(request, 1)
        if not answer.error_code:
            self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = {topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions}
        return answer

    def is_assigned(self):
        """Send heartbeats until the member has all partitions."""
        for _ in range(60):
            self.beat()
            if self.assigned == {self.topic_id: [0, 1]}:
                return True
            self.cluster.advance(1_000)
        return False

    def offsets(self, *numbers):
        request = messages.DescribeShareGroupOffsetsRequest
        topics = [request.DescribeShareGroupOffsetsRequestTopic("t", list(numbers))]
        group = request.DescribeShareGroupOffsetsRequestGroup(GROUP, topics if numbers else None)
        return self.ask(request([group]), 1).groups[0]

    def alter(self, offset):
        request = messages.AlterShareGroupOffsetsRequest
        partition = request.AlterShareGroupOffsetsRequestPartition(0, offset)
        topic = request.AlterShareGroupOffsetsRequestTopic
        return self.ask(request(GROUP, [topic("t", [partition]), topic("none", [partition])]), 0)

    def delete_offsets(self):
        request = messages.DeleteShareGroupOffsetsRequest
        return self.ask(request(GROUP, [request.DeleteShareGroupOffsetsRequestTopic("t")]), 0)

    def describe(self):
        return self.ask(messages.ShareGroupDescribeRequest([GROUP]), 1).groups[0]


@pytest.fixture
def user():
    return User()


def test_member_is_assigned_and_described(user):
    assert user.is_assigned()
    described = user.describe()
    assert (described.error_code, described.group_state) == (NONE, "Stable")
    assert [member.member_id for member in described.members] == ["member"]
    seen = user.cluster.groups().of(GROUP)
    assert (seen.type, seen.state, seen.assignor) == ("share", "Stable", "simple")
    assert [[str(key) for key in member.assignment] for member in seen.members] == [["t-0", "t-1"]]
    assert user.beat(member_epoch=-1).error_code == NONE
    assert user.describe().group_state == "Empty"


@pytest.mark.parametrize(
    ("member_id", "code"),
    [
        ("", ErrorCode.INVALID_REQUEST),
        ("m" * 37, ErrorCode.INVALID_REQUEST),
        ("m" * 36, NONE),
        # Java counts a character outside of the basic plane as two.
        ("\U0001f600" * 18, NONE),
        ("\U0001f600" * 19, ErrorCode.INVALID_REQUEST),
    ],
)
def test_member_id_has_a_length(user, member_id, code):
    assert user.beat(member_id=member_id).error_code == code


def test_offsets_of_an_empty_group_are_altered_described_and_deleted(user):
    altered = user.alter(3)
    assert [(topic.topic_name, topic.partitions[0].error_code) for topic in altered.responses] == [
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", NONE),
    ]
    (topic,) = user.offsets().topics
    assert [(row.partition_index, row.start_offset, row.lag) for row in topic.partitions] == [(0, 3, -3)]
    assert [row.error_code for row in user.delete_offsets().responses] == [NONE]
    assert user.offsets().topics == []
    assert user.offsets(0).topics[0].partitions[0].start_offset == -1


def test_group_whose_topics_are_none_is_answered_without_any(user):
    user.alter(3)
    request = messages.DescribeShareGroupOffsetsRequest
    asked = request([request.DescribeShareGroupOffsetsRequestGroup(GROUP, [])])
    (group,) = user.ask(asked, 1).groups
    assert (group.error_code, group.topics) == (NONE, [])


def test_next_coordinator_has_the_group(user):
    assert user.is_assigned()
    before = user.describe()
    coordinator = user.coordinator()
    user.cluster.kill(coordinator)
    user.up.remove(coordinator)
    user.cluster.advance(15_000)
    assert user.describe() == before
    assert user.beat().error_code == NONE


def test_deleted_group_is_gone(user):
    user.alter(3)
    result = user.ask(messages.DeleteGroupsRequest([GROUP]), 2).results[0]
    assert result.error_code == NONE
    assert user.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_consumer_group_apis_do_not_know_a_share_group(user):
    user.alter(3)
    classic = user.ask(messages.DescribeGroupsRequest([GROUP]), 6).groups[0]
    assert classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    consumer = user.ask(messages.ConsumerGroupDescribeRequest([GROUP]), 1).groups[0]
    assert consumer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
