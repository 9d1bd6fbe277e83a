"""Tests of share group members: join, assignment and leave."""

import gc

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata.image import TopicState

NONE = ErrorCode.NONE


def test_member_gets_partitions_once_they_have_state(shares):
    ident = shares.bench.set_topic("t", 2)
    member = shares.member("a", "t")
    assert member.join() == NONE
    assert (member.epoch, member.assigned) == (2, {})
    assert member.answer.heartbeat_interval_ms == 5_000
    shares.bench.run_later()
    assert set(shares.states.states) == {shares.key(ident, 0), shares.key(ident, 1)}
    assert {each.state_epoch for each in shares.states.states.values()} == {2}
    shares.settle(member)
    assert member.assigned == {ident: [0, 1]}
    assert member.epoch == 3


def test_partition_goes_to_several_members(shares):
    ident = shares.bench.set_topic("t", 1)
    members = [shares.member(name, "t") for name in "ab"]
    assert [member.join() for member in members] == [NONE, NONE]
    shares.settle(*members)
    assert [member.assigned for member in members] == [{ident: [0]}] * 2


def test_partitions_are_spread_over_members(shares):
    ident = shares.bench.set_topic("t", 4)
    members = [shares.member(name, "t") for name in "ab"]
    for member in members:
        member.join()
    shares.settle(*members)
    assert sorted(number for member in members for number in member.assigned[ident]) == [0, 1, 2, 3]


def test_failed_initialization_is_retried(shares):
    ident = shares.bench.set_topic("t", 1)
    key = shares.key(ident, 0)
    shares.states.errors[key] = ErrorCode.COORDINATOR_NOT_AVAILABLE
    member = shares.member("a", "t")
    member.join()
    shares.settle(member)
    assert member.assigned == {}
    del shares.states.errors[key]
    shares.settle(member)
    assert member.assigned == {ident: [0]}


def test_new_partitions_of_a_topic_are_assigned(shares):
    ident = shares.bench.set_topic("t", 1)
    member = shares.member("a", "t")
    member.join()
    shares.settle(member)
    shares.bench.set_topic("t", 3)
    member.beat()
    member.beat()
    assert member.assigned == {ident: [0]}, "the others have no state yet"
    shares.settle(member)
    assert member.assigned == {ident: [0, 1, 2]}


def test_group_is_the_same_after_a_failover(shares):
    ident = shares.bench.set_topic("t", 2)
    member = shares.member("a", "t")
    member.join()
    shares.settle(member)
    before = shares.describe()
    shares.bench.fail_over()
    assert shares.describe() == before
    assert member.beat() == NONE
    assert before.group_state == "Stable"
    assert before.assignor_name == "simple"
    assert [each.member_id for each in before.members] == ["a"]
    topics = before.members[0].assignment.topic_partitions
    assert [(topic.topic_id, topic.topic_name) for topic in topics] == [(ident, "t")]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"member_epoch": 9}, ErrorCode.FENCED_MEMBER_EPOCH),
        ({"member_id": "b"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "other"}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 0}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_heartbeats_are_rejected(shares, changes, error):
    shares.bench.set_topic("t", 1)
    member = shares.member("a", "t")
    member.join()
    assert member.beat(**changes) == error


def test_deleted_topic_leaves_no_state(shares):
    shares.bench.set_topic("orders", 1)
    member = shares.member("m", "orders")
    member.join()
    shares.settle(member)
    shares.bench.delete_topic("orders")
    gc.collect()
    topics = [each.name for each in gc.get_objects() if type(each) is TopicState]
    assert "orders" not in topics
