"""Tests of static members of streams groups, which exist from Kafka 4.4 on."""

import pytest

from broker_sim.errors import ErrorCode
from tests.broker_sim.group.streams.members import HOST, Request

NONE = ErrorCode.NONE
SESSION_MS = 45_000
AWAY = -2


@pytest.fixture
def pair(newest):
    """Return a static and another member that have a task each."""
    newest.bench.set_topic("in", 2)
    static, other = newest.member("a", instance_id="one"), newest.member("b")
    static.join()
    other.join()
    newest.settle(static, other)
    assert [static.active, other.active] == [{"0": [0]}, {"0": [1]}]
    return static, other


def leave_for_a_while(member):
    assert member.beat(member_epoch=AWAY) == NONE
    assert (member.answer.member_id, member.answer.member_epoch) == (member.member_id, AWAY)


def test_returning_member_gets_its_task_without_rebalance(newest, pair):
    static, other = pair
    before = newest.group.group_epoch
    leave_for_a_while(static)
    other.beat()
    assert other.active == {"0": [1]}
    back = newest.member("a2", process=static.process, instance_id="one")
    assert back.join() == NONE
    assert (back.active, back.epoch, newest.group.group_epoch) == ({"0": [0]}, before, before)
    assert sorted(newest.group.members) == ["a2", "b"]
    assert newest.group.targets["a2"].active == {"0": {0}}
    assert newest.group.state_name == "Stable"


def test_member_may_return_with_the_same_member_id(newest, pair):
    static, _ = pair
    leave_for_a_while(static)
    assert static.join() == NONE
    assert static.active == {"0": [0]}
    assert newest.group.static_members == {"one": "a"}


def test_instance_id_of_active_member_is_unreleased(newest, pair):
    static, _ = pair
    late = newest.member("late", instance_id="one")
    assert late.join() == ErrorCode.UNRELEASED_INSTANCE_ID
    assert late.answer.error_message == (
        "Static member late with instance id one cannot join the group because the instance id is owned by a member."
    )
    assert static.beat() == NONE


@pytest.mark.parametrize("epoch", [1, -1, AWAY])
def test_replaced_member_is_fenced(newest, pair, epoch):
    static, _ = pair
    leave_for_a_while(static)
    newest.member("a2", instance_id="one").join()
    assert static.beat(member_epoch=epoch) == ErrorCode.FENCED_INSTANCE_ID
    assert static.answer.error_message == "Static member a with instance id one was fenced by member a2."
    assert static.beat(member_epoch=epoch, instance_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert static.answer.error_message == "Instance id other is unknown."


def test_absent_member_loses_its_tasks_with_its_session(newest, pair):
    static, other = pair
    leave_for_a_while(static)
    for _ in range(9):
        newest.bench.advance(SESSION_MS // 10)
        other.beat()
    newest.bench.advance(SESSION_MS // 10 - 1)
    assert "a" in newest.group.members
    newest.bench.advance(1)
    assert list(newest.group.members) == ["b"]
    assert newest.group.static_members == {}
    newest.settle(other)
    assert other.active == {"0": [0, 1]}


def test_session_of_replaced_member_does_not_affect_the_new_one(newest, pair):
    static, _other = pair
    leave_for_a_while(static)
    newest.bench.advance(SESSION_MS - 1)
    back = newest.member("a2", instance_id="one")
    back.join()
    newest.bench.advance(1)
    back.beat()
    assert "a2" in newest.group.members
    newest.bench.advance(SESSION_MS - 1)
    assert list(newest.group.members) == ["a2"]


def test_only_relevant_changes_bump_the_epoch(newest, pair):
    static, _ = pair
    before = newest.group.group_epoch
    assert static.beat(host="elsewhere", user_endpoint=Request.Endpoint("host", 80)) == NONE
    assert newest.group.members["a"].client_host == "elsewhere"
    assert newest.group.group_epoch == before
    for number, fields in enumerate(
        [{"rack_id": "r"}, {"process_id": "p"}, {"client_tags": [Request.KeyValue("zone", "a")]}], start=1
    ):
        assert static.beat(host=HOST, **fields) == NONE
        assert newest.group.group_epoch == before + number


def test_permanent_leave_removes_the_member(newest, pair):
    static, other = pair
    assert static.leave() == NONE
    newest.settle(other)
    assert other.active == {"0": [0, 1]}
    assert newest.group.static_members == {}


def test_next_coordinator_restores_absent_members(newest, pair):
    static, other = pair
    leave_for_a_while(static)
    newest.bench.fail_over()
    assert newest.group.members["a"].member_epoch == AWAY
    back = newest.member("a2", instance_id="one")
    assert back.join() == NONE
    newest.settle(back, other)
    assert [back.active, other.active] == [{"0": [0]}, {"0": [1]}]


def test_commit_in_older_epoch_is_valid_after_return(newest, pair):
    static, _ = pair
    leave_for_a_while(static)
    assert newest.group.members["a"].assigned.active == {"0": {0: 0}}


def test_full_group_accepts_a_returning_member(make_newest):
    streams = make_newest(group_streams_max_size=1)
    streams.bench.set_topic("in", 1)
    static = streams.member("a", instance_id="one")
    assert static.join() == NONE
    assert static.join() == ErrorCode.UNRELEASED_INSTANCE_ID
    assert streams.member("b").join() == ErrorCode.GROUP_MAX_SIZE_REACHED
    leave_for_a_while(static)
    assert streams.member("a2", instance_id="one").join() == NONE


def test_endpoint_of_replaced_member_is_not_sent(newest, pair):
    static, other = pair
    static.beat(user_endpoint=Request.Endpoint("old", 80))
    leave_for_a_while(static)
    back = newest.member("a2", process=static.process, instance_id="one")
    back.join(user_endpoint=Request.Endpoint("new", 80))
    told = [each.user_endpoint.host for each in back.answer.partitions_by_user_endpoint]
    assert told == ["new"]
    other.beat()
    assert [each.user_endpoint.host for each in other.answer.partitions_by_user_endpoint] == ["new"]


@pytest.mark.parametrize(("warmup_replicas", "is_robbed"), [(2, True), (0, False)])
def test_rejected_join_takes_the_target_of_an_absent_member(make_newest, warmup_replicas, is_robbed):
    """A defect observed in Kafka 4.4.0: a rejected join takes over the member's target."""
    streams = make_newest(group_streams_num_warmup_replicas=warmup_replicas)
    streams.bench.set_topic("in", 1)
    static = streams.member("a", instance_id="one")
    static.join()
    static.beat()
    assert streams.member("late", instance_id="one").join() == ErrorCode.UNRELEASED_INSTANCE_ID
    leave_for_a_while(static)
    back = streams.member("a2", process=static.process, instance_id="one")
    back.join()
    assert back.active == ({} if is_robbed else {"0": [0]})
    back.beat()
    assert back.active == {"0": [0]}
    assert streams.group.group_epoch == (3 if is_robbed else 2)


def test_heartbeat_to_stable_group_corrects_a_rejected_join(newest, pair):
    static, other = pair
    newest.member("late", instance_id="one").join()
    other.beat()
    leave_for_a_while(static)
    back = newest.member("a2", process=static.process, instance_id="one")
    back.join()
    assert back.active == {"0": [0]}


def test_replacing_member_keeps_its_own_target(newest):
    """The static member had no task, so the member keeps its own target."""
    newest.bench.set_topic("in", 1)
    other, static = newest.member("b"), newest.member("a", instance_id="one")
    other.join()
    static.join()
    newest.settle(other, static)
    assert [other.active, static.active] == [{"0": [0]}, {}]
    leave_for_a_while(static)
    other.instance_id = "one"
    assert other.join(rack_id="r") == NONE
    assert newest.group.targets["b"].active == {"0": {0}}


def test_rejoin_without_endpoint_clears_it(newest, pair):
    static, _ = pair
    static.beat(user_endpoint=Request.Endpoint("old", 80))
    leave_for_a_while(static)
    static.join()
    assert newest.group.members["a"].user_endpoint is None
