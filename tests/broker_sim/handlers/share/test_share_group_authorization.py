"""Which rights the APIs of share groups and their offsets need, and what is told without them.

Which of all rights each API needs is compared with a real Kafka in `tests/integration/acls`.
"""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages
from tests.broker_sim.handlers.share.conftest import GROUP, TOPIC

OTHER, EMPTY = "other", "empty"
NONE = ErrorCode.NONE
GROUP_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_TEXT, TOPIC_TEXT = "Group authorization failed.", "Topic authorization failed."
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
UNKNOWN_TEXT = "This server does not host this topic-partition."
NOT_TOLD = -(1 << 31)
"""The authorized operations of an answer without them."""
READ, DELETE, DESCRIBE = AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE


class User:
    """A client of one broker with two topics; `GROUP` has a member, `EMPTY` none, both have state."""

    def __init__(self, bench):
        self.bench = bench
        self.other_id = bench.create_topic(OTHER)
        find = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        self.until(lambda: not bench.ask(find, 6).coordinators[0].error_code)
        self.until(lambda: not self.alter(EMPTY, TOPIC, OTHER).error_code)
        joined = self.beat(0, subscribed_topic_names=[TOPIC, OTHER])
        self.epoch = joined.member_epoch
        self.until(self.is_assigned)

    def until(self, condition):
        for _ in range(60):
            if condition():
                return
            self.bench.cluster.advance(500)
        raise AssertionError("not reached")

    def beat(self, epoch, *, group=GROUP, member="member", **fields):
        request = messages.ShareGroupHeartbeatRequest(group, member, epoch, **fields)
        return self.bench.ask(request, 1)

    def is_assigned(self):
        answer = self.beat(self.epoch)
        self.epoch = answer.member_epoch
        return answer.assignment is not None and len(answer.assignment.topic_partitions) > 1

    def deny(self, operation, *, group="", topic=""):
        kind = ResourceType.GROUP if group else ResourceType.TOPIC
        self.bench.deny(operation, kind, group or topic)

    def describe(self, *groups, operations=True):
        request = messages.ShareGroupDescribeRequest(list(groups), operations)
        return self.bench.ask(request, 1).groups

    def offsets(self, *groups, topics=None):
        request = messages.DescribeShareGroupOffsetsRequest
        topic, group = (request.DescribeShareGroupOffsetsRequestTopic, request.DescribeShareGroupOffsetsRequestGroup)
        named = None if topics is None else [topic(name, [0, 1]) for name in topics]
        return self.bench.ask(request([group(each, named) for each in groups]), 1).groups

    def alter(self, group, *names, numbers=(0,), offset=3):
        request = messages.AlterShareGroupOffsetsRequest
        rows = [request.AlterShareGroupOffsetsRequestPartition(one, offset) for one in numbers]
        topic = request.AlterShareGroupOffsetsRequestTopic
        return self.bench.ask(request(group, [topic(name, rows) for name in names]), 0)

    def delete(self, group, *names):
        request = messages.DeleteShareGroupOffsetsRequest
        topic = request.DeleteShareGroupOffsetsRequestTopic
        return self.bench.ask(request(group, [topic(name) for name in names]), 0)

    def start_offset(self, topic):
        """Return where the empty group begins to read a topic."""
        (group,) = self.offsets(EMPTY, topics=[topic])
        return group.topics[0].partitions[0].start_offset


@pytest.fixture
def user(guarded_bench):
    return User(guarded_bench)


# -- ShareGroupHeartbeat ------------------------------------------------------------------------


def test_nobody_joins_a_group_that_it_may_not_read(user):
    user.deny(READ, group="new")
    answer = user.beat(0, group="new", subscribed_topic_names=[TOPIC])
    assert answer == messages.ShareGroupHeartbeatResponse(error_code=GROUP_DENIED)
    assert user.describe("new")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_group_is_denied_before_the_request_is_looked_at(user):
    user.deny(READ, group="new")
    assert user.beat(0, group="new", member="").error_code == GROUP_DENIED


@pytest.mark.parametrize("hidden", [OTHER, "unknown"])
def test_member_subscribes_to_nothing_if_one_topic_is_hidden(user, hidden):
    user.deny(DESCRIBE, topic=hidden)
    answer = user.beat(0, member="second", subscribed_topic_names=[TOPIC, hidden])
    assert answer == messages.ShareGroupHeartbeatResponse(error_code=TOPIC_DENIED)
    user.deny(DESCRIBE, topic=TOPIC)
    assert user.beat(user.epoch).error_code == NONE  # It names no topic.


def test_member_subscribes_to_topics_that_it_may_describe_only(user):
    user.deny(READ, topic=TOPIC)
    user.deny(DESCRIBE, group=GROUP)
    assert user.beat(user.epoch, subscribed_topic_names=[TOPIC]).error_code == NONE


# -- ShareGroupDescribe -------------------------------------------------------------------------


def test_denied_group_comes_first_and_without_its_members(user):
    user.deny(DESCRIBE, group=GROUP)
    denied, described = user.describe(EMPTY, GROUP)
    row = messages.ShareGroupDescribeResponse.DescribedGroup
    assert denied == row(GROUP_DENIED, group_id=GROUP)
    assert (described.error_code, described.group_id, described.group_state) == (NONE, EMPTY, "Empty")


def test_group_with_a_hidden_topic_is_not_described(user):
    assert len(user.describe(GROUP)[0].members) == 1
    user.deny(DESCRIBE, topic=OTHER)
    hidden, described = sorted(user.describe(EMPTY, GROUP), key=lambda row: row.error_code == 0)
    text = "The group has described topic(s) that the client is not authorized to describe."
    row = messages.ShareGroupDescribeResponse.DescribedGroup
    assert hidden == row(TOPIC_DENIED, text, GROUP)
    assert (described.error_code, described.group_id) == (NONE, EMPTY)


def test_description_has_the_authorized_operations_of_a_group(user):
    user.deny(DELETE, group=GROUP)
    user.deny(DESCRIBE, group=EMPTY)
    refused, described = user.describe(GROUP, EMPTY)
    assert refused.authorized_operations == NOT_TOLD
    operations = AclOperation.READ, AclOperation.DESCRIBE
    configs = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
    assert described.authorized_operations == sum(1 << one for one in (*operations, *configs))
    assert user.describe(GROUP, operations=False)[0].authorized_operations == NOT_TOLD


# -- DescribeShareGroupOffsets ------------------------------------------------------------------


def test_offsets_of_a_denied_group_are_not_described(user):
    user.deny(DESCRIBE, group=EMPTY)
    denied, described = user.offsets(EMPTY, GROUP, topics=[TOPIC])
    row = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
    assert denied == row(EMPTY, error_code=GROUP_DENIED)
    assert (described.error_code, described.topics[0].partitions[0].error_code) == (NONE, NONE)


def test_topics_that_are_hidden_are_no_part_of_all_topics(user):
    user.deny(DESCRIBE, topic=OTHER)
    (group,) = user.offsets(EMPTY)
    assert [topic.topic_name for topic in group.topics] == [TOPIC]


@pytest.mark.parametrize("hidden", [OTHER, "unknown"])
def test_offsets_of_a_hidden_topic_look_like_those_of_a_missing_one(user, hidden):
    user.deny(DESCRIBE, topic=hidden)
    (group,) = user.offsets(EMPTY, topics=[hidden, TOPIC])
    described, refused = group.topics
    response = messages.DescribeShareGroupOffsetsResponse
    row = response.DescribeShareGroupOffsetsResponsePartition
    assert refused == response.DescribeShareGroupOffsetsResponseTopic(
        hidden,
        bytes(16),
        [row(number, -1, error_code=TOPIC_DENIED, error_message=TOPIC_TEXT, lag=-1) for number in (0, 1)],
    )
    assert (described.topic_name, described.partitions[0].start_offset) == (TOPIC, 3)


# -- AlterShareGroupOffsets ---------------------------------------------------------------------


def test_offsets_of_a_group_that_may_not_be_read_stay(user):
    user.deny(READ, group=EMPTY)
    answer = user.alter(EMPTY, TOPIC, offset=5)
    assert answer == messages.AlterShareGroupOffsetsResponse(error_code=GROUP_DENIED, error_message=GROUP_TEXT)
    assert user.start_offset(TOPIC) == 3


def test_offsets_are_altered_of_topics_that_may_be_read(user):
    user.deny(READ, topic=OTHER)
    user.deny(DELETE, group=EMPTY)
    user.deny(READ, topic="hidden")
    answer = user.alter(EMPTY, "hidden", OTHER, "unknown", TOPIC, offset=5)
    response = messages.AlterShareGroupOffsetsResponse
    topic = response.AlterShareGroupOffsetsResponseTopic
    row = response.AlterShareGroupOffsetsResponsePartition
    assert answer.responses == [
        topic("hidden", bytes(16), [row(0, TOPIC_DENIED, TOPIC_TEXT)]),
        # As in Kafka, a topic that may not be read has its id here.
        topic(OTHER, user.other_id, [row(0, TOPIC_DENIED, TOPIC_TEXT)]),
        topic("unknown", bytes(16), [row(0, UNKNOWN, UNKNOWN_TEXT)]),
        topic(TOPIC, user.bench.topic_id, [row(0)]),
    ]
    assert (user.start_offset(TOPIC), user.start_offset(OTHER)) == (5, 3)


def test_refused_topic_without_partitions_has_no_answer(user):
    user.deny(READ, topic=OTHER)
    answer = user.alter(EMPTY, OTHER, "unknown", TOPIC, numbers=())
    assert [(topic.topic_name, topic.partitions) for topic in answer.responses] == [(TOPIC, [])]


def test_topic_that_is_named_twice_is_answered_once(user):
    user.deny(READ, topic=OTHER)
    answer = user.alter(EMPTY, OTHER, TOPIC, OTHER, TOPIC)
    assert [(topic.topic_name, [row.error_code for row in topic.partitions]) for topic in answer.responses] == [
        (OTHER, [TOPIC_DENIED] * 2),
        (TOPIC, [NONE] * 2),
    ]


# -- DeleteShareGroupOffsets --------------------------------------------------------------------


def test_offsets_of_a_group_that_may_not_be_deleted_stay(user):
    user.deny(DELETE, group=EMPTY)
    answer = user.delete(EMPTY, TOPIC)
    assert answer == messages.DeleteShareGroupOffsetsResponse(error_code=GROUP_DENIED, error_message=GROUP_TEXT)
    assert user.start_offset(TOPIC) == 3


def test_offsets_are_deleted_of_topics_that_may_be_read(user):
    user.deny(READ, topic=OTHER)
    user.deny(READ, topic="hidden")
    user.deny(READ, group=EMPTY)
    answer = user.delete(EMPTY, TOPIC, "hidden", OTHER)
    row = messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
    assert answer.responses == [
        row("hidden", bytes(16), TOPIC_DENIED, TOPIC_TEXT),
        row(OTHER, bytes(16), TOPIC_DENIED, TOPIC_TEXT),
        row(TOPIC, user.bench.topic_id, error_message=None),
    ]
    assert (user.start_offset(TOPIC), user.start_offset(OTHER)) == (-1, 3)
