"""ConsumerGroupDescribe in all versions."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest

GROUP = "g"
NONE, NOT_FOUND = ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND
CONSUMER_MEMBER, UNKNOWN_MEMBER = 1, -1
NOT_ASKED = -(2**31)
ALL_OPERATIONS = 3400


def join(user, member_id="m", group_id=GROUP, **fields):
    request = ConsumerGroupHeartbeatRequest(
        group_id, member_id, 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[], **fields
    )
    answer = user.ask(request, 1, user.leader(group_id))
    assert not answer.error_code, answer.error_message
    return answer


def describe(user, *group_ids, version=1, broker=None, operations=False):
    request = ConsumerGroupDescribeRequest(list(group_ids), operations)
    return user.ask(request, version, broker or user.leader(GROUP)).groups


@pytest.mark.parametrize(("version", "kind"), [(0, UNKNOWN_MEMBER), (1, CONSUMER_MEMBER)])
def test_group_is_described_with_its_members(user, version, kind):
    join(user, instance_id="i", rack_id="r")
    (group,) = describe(user, GROUP, version=version)
    assert (group.error_code, group.group_id, group.group_state) == (NONE, GROUP, "Stable")
    assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (2, 2, "uniform")
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m", "i", "r")
    assert (member.member_epoch, member.member_type) == (2, kind)
    assert member.subscribed_topic_names == ["t"]
    (owned,) = member.assignment.topic_partitions
    assert (owned.topic_name, owned.topic_id) == ("t", user.topic_id())
    assert member.target_assignment == member.assignment


def test_group_whose_members_have_left_is_empty(user):
    join(user)
    user.ask(ConsumerGroupHeartbeatRequest(GROUP, "m", -1), 1, user.leader(GROUP))
    (group,) = describe(user, GROUP)
    assert (group.group_state, group.members) == ("Empty", [])


def test_other_groups_are_not_found(user):
    user.stable_member()
    elsewhere = next(name for name in map(str, range(50)) if user.leader(name) == user.leader(GROUP))
    found = {group.group_id: group for group in describe(user, GROUP, elsewhere)}
    assert found[GROUP].error_code == NOT_FOUND
    assert found[GROUP].error_message == f"Group {GROUP} is not a consumer group."
    assert found[elsewhere].error_message == f"Group {elsewhere} not found."


def test_each_group_has_its_own_error(user):
    join(user)
    elsewhere = next(name for name in map(str, range(50)) if user.leader(name) != user.leader(GROUP))
    found = {group.group_id: group.error_code for group in describe(user, GROUP, elsewhere, "")}
    assert found == {GROUP: NONE, elsewhere: ErrorCode.NOT_COORDINATOR, "": ErrorCode.INVALID_GROUP_ID}


def test_operations_are_told_to_who_asks(user):
    join(user)
    told = [describe(user, GROUP, operations=asked)[0].authorized_operations for asked in (False, True)]
    assert told == [NOT_ASKED, ALL_OPERATIONS]


def test_protocol_that_is_switched_off_is_an_unsupported_version(make_user):
    user = make_user(group_coordinator_rebalance_protocols="classic")
    (group,) = describe(user, GROUP)
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION
