"""Heartbeat in all versions."""

import pytest

from broker_sim.coordinator.context import CoordinatorState
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.messages import HeartbeatRequest

GROUP = "g"


@pytest.mark.parametrize("version", range(5))
def test_every_version_keeps_a_member_alive(user, version):
    member_id = user.stable_member()
    for _ in range(4):
        user.cluster.advance(9_000)
        response = user.ask(HeartbeatRequest(GROUP, 1, member_id), version, user.leader(GROUP))
        assert response.error_code == ErrorCode.NONE


def test_errors(user):
    leader = user.leader(GROUP)
    member_id = user.stable_member()
    for request, broker, error in (
        (HeartbeatRequest(GROUP, 1, "stranger"), leader, ErrorCode.UNKNOWN_MEMBER_ID),
        (HeartbeatRequest(GROUP, 2, member_id), leader, ErrorCode.ILLEGAL_GENERATION),
        (HeartbeatRequest(GROUP, 1, member_id), user.another(), ErrorCode.NOT_COORDINATOR),
        (HeartbeatRequest("", 1, member_id), leader, ErrorCode.INVALID_GROUP_ID),
    ):
        assert user.ask(request, 4, broker).error_code == error


def test_loading_coordinator_answers_without_an_error(user):
    member_id = user.stable_member()
    leader = user.leader(GROUP)
    groups = user.cluster.nodes.brokers[leader].groups
    groups.runtime.find(GROUP).state = CoordinatorState.LOADING
    with pytest.raises(ApiError) as refused:
        groups.shard(GROUP)
    assert refused.value.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    request = HeartbeatRequest(GROUP, 1, member_id)
    assert user.ask(request, 4, leader).error_code == ErrorCode.NONE


def test_it_waits_for_what_was_written_before_it(make_user):
    user = make_user(offsets_commit_timeout_ms=2_000, replica_lag_time_max_ms=60_000)
    leader = user.leader(GROUP)
    member_id = user.stable_member()
    for follower in {1, 2, 3} - {leader}:
        user.cluster.pause(follower)
    other = user.other()
    commit = other.send(other.commit_request(GROUP, {0: 7}, member=member_id, generation=1), 9, leader)
    user.cluster.advance(1_000)
    beat = user.send(HeartbeatRequest(GROUP, 1, member_id), 4, leader)
    user.cluster.run_until(lambda: beat.done)
    assert beat.response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert beat.elapsed_ms == 2_000
    assert commit.done
