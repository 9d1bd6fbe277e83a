"""ConsumerGroupHeartbeat in all versions."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, LeaveGroupRequest

GROUP = "g"
NONE, INVALID = ErrorCode.NONE, ErrorCode.INVALID_REQUEST


def first_heartbeat(**fields):
    return ConsumerGroupHeartbeatRequest(
        **{
            "group_id": GROUP,
            "member_id": "m",
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
            **fields,
        }
    )


def later_heartbeat(epoch, member_id="m", **fields):
    return ConsumerGroupHeartbeatRequest(GROUP, member_id, epoch, **fields)


def beat(user, request, version=1, broker=None):
    return user.ask(request, version, broker or user.leader(GROUP))


@pytest.mark.parametrize("version", [0, 1])
def test_every_version_serves_a_member_from_its_join_to_its_leaving(user, version):
    joined = beat(user, first_heartbeat(), version)
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (NONE, "m", 2)
    (topic,) = joined.assignment.topic_partitions
    assert topic.topic_id == user.topic_id()
    assert joined.heartbeat_interval_ms == 5_000
    again = beat(user, later_heartbeat(2), version)
    assert (again.error_code, again.member_epoch, again.assignment) == (NONE, 2, None)
    left = beat(user, later_heartbeat(-1), version)
    assert (left.error_code, left.member_id, left.member_epoch) == (NONE, "m", -1)
    assert user.group().is_empty


def test_coordinator_makes_ids_in_version_0_only(user):
    made = beat(user, first_heartbeat(member_id=""), 0)
    assert len(made.member_id) == 22
    refused = beat(user, first_heartbeat(member_id=""), 1)
    assert (refused.error_code, refused.error_message) == (INVALID, "MemberId can't be empty.")


def test_client_is_described_as_java_writes_addresses(user):
    beat(user, first_heartbeat())
    described = user.ask(ConsumerGroupDescribeRequest([GROUP]), 1, user.leader(GROUP)).groups[0]
    (member,) = described.members
    assert member.client_host.startswith("/")
    assert member.client_id


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_incomplete_request_is_told_what_is_missing(user, fields, message):
    answer = beat(user, first_heartbeat(**fields))
    assert (answer.error_code, answer.error_message) == (INVALID, message)


def test_assignor_that_is_not_offered_is_named_beside_those_that_are(user):
    answer = beat(user, first_heartbeat(server_assignor="mine"))
    assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert answer.error_message == ("ServerAssignor mine is not supported. Supported assignors: uniform, range.")


def test_errors_of_the_coordinator_come_with_their_messages(user):
    unknown = beat(user, later_heartbeat(1))
    assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert unknown.error_message == f"Consumer group {GROUP} not found."
    beat(user, first_heartbeat())
    for request, error in (
        (later_heartbeat(1, "stranger"), ErrorCode.UNKNOWN_MEMBER_ID),
        (later_heartbeat(9), ErrorCode.FENCED_MEMBER_EPOCH),
        (first_heartbeat(subscribed_topic_regex="["), ErrorCode.INVALID_REGULAR_EXPRESSION),
    ):
        answer = beat(user, request)
        assert answer.error_code == error
        assert answer.error_message


def test_other_broker_is_not_the_coordinator(user):
    answer = beat(user, first_heartbeat(), broker=user.another())
    assert answer.error_code == ErrorCode.NOT_COORDINATOR


def test_protocol_that_is_switched_off_is_an_unsupported_version(make_user):
    user = make_user(group_coordinator_rebalance_protocols="classic")
    assert beat(user, first_heartbeat()).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_answer_waits_for_the_replicas(make_user):
    user = make_user(offsets_commit_timeout_ms=2_000, replica_lag_time_max_ms=60_000)
    leader = user.leader(GROUP)
    for follower in {1, 2, 3} - {leader}:
        user.cluster.pause(follower)
    pending = user.send(first_heartbeat(), 1, leader)
    user.cluster.advance(1_999)
    assert not pending.done
    user.cluster.run_until(lambda: pending.done)
    assert pending.response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_classic_group_that_cannot_move_is_replaced_once_it_is_empty(user):
    member_id = user.stable_member()
    refused = beat(user, first_heartbeat())
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND, "its subscription cannot be read"
    leader = user.leader(GROUP)
    members = [LeaveGroupRequest.MemberIdentity(member_id)]
    leave = user.ask(LeaveGroupRequest(GROUP, members=members), 3, leader)
    assert not leave.error_code
    assert beat(user, first_heartbeat()).error_code == NONE
