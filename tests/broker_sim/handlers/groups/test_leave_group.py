"""LeaveGroup in all versions."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.protocol.messages import LeaveGroupRequest

GROUP = "g"


def leave(user, *member_ids, version=5, broker=None, group_id=GROUP):
    request = LeaveGroupRequest(group_id=group_id)
    if version >= 3:
        request.members = [LeaveGroupRequest.MemberIdentity(member_id) for member_id in member_ids]
    else:
        (request.member_id,) = member_ids
    response = user.ask(request, version, broker or user.leader(GROUP))
    return response.error_code, [(each.member_id, each.error_code) for each in response.members]


@pytest.mark.parametrize("version", range(6))
def test_every_version_removes_a_member(user, version):
    member_id = user.stable_member()
    left = leave(user, member_id, version=version)
    assert left == (0, [(member_id, 0)] if version >= 3 else [])
    group = user.group()
    assert group.is_empty


@pytest.mark.parametrize("version", range(6))
def test_unknown_members_are_told_where_the_version_can(user, version):
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    told = (0, [("stranger", unknown)]) if version >= 3 else (unknown, [])
    assert leave(user, "stranger", version=version) == told
    user.stable_member()
    assert leave(user, "stranger", version=version) == told


def test_member_without_an_id_is_no_static_member_of_an_empty_name(user):
    join = user.join()
    join.group_instance_id = ""
    joined = user.ask(join, 9, user.leader(GROUP))
    assert not joined.error_code
    assert leave(user, "") == (0, [("", ErrorCode.UNKNOWN_MEMBER_ID)])
    assert list(user.group().members) == [joined.member_id]


def test_errors_of_the_whole_request(user):
    assert leave(user, "me", broker=user.another()) == (ErrorCode.NOT_COORDINATOR, [])
    assert leave(user, "me", group_id="") == (ErrorCode.INVALID_GROUP_ID, [])


def test_answer_waits_until_the_empty_group_is_committed(make_user):
    user = make_user(offsets_commit_timeout_ms=2_000, replica_lag_time_max_ms=60_000)
    member_id = user.stable_member()
    for follower in {1, 2, 3} - {user.leader(GROUP)}:
        user.cluster.pause(follower)
    assert leave(user, member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])
