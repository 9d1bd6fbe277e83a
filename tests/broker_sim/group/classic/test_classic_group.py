"""Tests of the checks of a group in each of its states."""

from itertools import combinations

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.group import OffsetExpiration
from broker_sim.group.offsets import OffsetCommit
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.protocol.codec import encode
from broker_sim.protocol.messages import ConsumerProtocolSubscription

SUBSCRIPTION = b"\0\3" + b"".join(encode(ConsumerProtocolSubscription(topics=["a", "b"]), 3))
INITIAL_DELAY_MS = 3_000


def commit_error(group, member_id="", generation=-1, instance_id=None, transactional=False):
    commit = OffsetCommit("group", member_id, instance_id, generation, 9, [])
    try:
        group.validate_offset_commit(commit, is_transactional=transactional)
    except ApiError as error:
        return error.error_code.name
    return None


def deletion_errors(group):
    errors = []
    for check in (group.validate_offset_delete, group.validate_delete_group):
        try:
            check()
        except ApiError as error:
            errors.append(error.error_code)
        else:
            errors.append(None)
    return errors


def test_commits_of_an_empty_group(bench):
    bench.member().join()
    assert commit_error(bench.group) is None
    assert commit_error(bench.group, "gone", 1) == "UNKNOWN_MEMBER_ID"


def test_commits_of_a_stable_group(bench):
    (member,) = bench.stable_static("one")
    member_id = member.member_id
    assert commit_error(bench.group, member_id, 1) is None
    assert commit_error(bench.group, member_id, 1, "one") is None
    assert commit_error(bench.group) == "UNKNOWN_MEMBER_ID"
    assert commit_error(bench.group, member_id, 2) == "ILLEGAL_GENERATION"
    assert commit_error(bench.group, "stranger", 1) == "UNKNOWN_MEMBER_ID"
    assert commit_error(bench.group, "stranger", 1, "one") == "FENCED_INSTANCE_ID"
    assert commit_error(bench.group, transactional=True) is None


def test_commits_during_a_rebalance(bench):
    leader, follower = bench.stable(2)
    leader.join()
    assert commit_error(bench.group, follower.member_id, 1) is None
    follower.join()
    assert bench.state == "CompletingRebalance"
    assert commit_error(bench.group, follower.member_id, 2) == "REBALANCE_IN_PROGRESS"
    assert commit_error(bench.group, follower.member_id, 2, transactional=True) is None


def test_groups_with_members_are_not_deleted(bench):
    (member,) = bench.stable()
    assert deletion_errors(bench.group) == [None, ErrorCode.NON_EMPTY_GROUP]
    member.leave()
    assert deletion_errors(bench.group) == [None, None]


def test_offsets_of_non_consumer_group_with_members_are_not_deleted(bench):
    bench.stable(protocol_type="connect")
    assert deletion_errors(bench.group) == [ErrorCode.NON_EMPTY_GROUP] * 2


def test_dead_group_is_not_found(bench):
    bench.stable()
    group = bench.group
    bench.resign()
    assert deletion_errors(group) == [ErrorCode.GROUP_ID_NOT_FOUND] * 2
    assert commit_error(group) == "COORDINATOR_NOT_AVAILABLE"


@pytest.mark.parametrize("loaded", [False, True])
def test_topics_of_consumers_are_parsed(bench, loaded):
    bench.stable(protocols=[("range", SUBSCRIPTION)])
    if loaded:
        bench.fail_over()
    assert bench.group.subscribed_topics == {"a", "b"}
    assert bench.group.is_subscribed_to_topic("a")
    assert not bench.group.is_subscribed_to_topic("c")


def test_unparsable_consumers_may_subscribe_to_any_topic(bench):
    bench.stable()
    assert bench.group.subscribed_topics is None
    assert bench.group.is_subscribed_to_topic("c")


def test_non_consumers_subscribe_to_no_topics(bench):
    bench.stable(protocol_type="connect")
    assert not bench.group.is_subscribed_to_topic("c")


def test_offset_retention_starts_when_the_group_is_empty(bench):
    (member,) = bench.stable(protocols=[("range", SUBSCRIPTION)])
    assert bench.group.offset_expiration() == OffsetExpiration(None)
    member.join()
    assert bench.group.offset_expiration() is None
    member.leave()
    now_ms = bench.clock.wall_clock_ms()
    bench.advance(5_000)
    assert bench.group.offset_expiration() == OffsetExpiration(now_ms)


def test_offset_retention_of_simple_group_starts_at_commit(bench):
    assert bench.classic.get_or_create("simple").offset_expiration() == OffsetExpiration(None)


def test_assignments_are_copies_of_the_request(bench):
    member = bench.member().enter()
    bench.advance(INITIAL_DELAY_MS)
    frame = bytearray(b"mine")
    member.sync({member.member_id: memoryview(frame)})
    frame[:] = b"junk"
    assert member.sync().synced.assignment == b"mine"


def test_metadata_of_members_are_copies_of_the_request(bench):
    frame = bytearray(b"me")
    member = bench.member(protocols=[("range", memoryview(frame))]).enter()
    frame[:] = b"xx"
    bench.advance(INITIAL_DELAY_MS)
    assert member.joined.members[0].metadata == b"me"


def test_member_list_is_in_java_table_order(bench):
    members = bench.stable_static(*(f"i{number}" for number in range(14)))
    ids = [member.member_id for member in members]
    expected = hash_order(ids, string_hash, 32)
    assert expected != ids
    assert [member.member_id for member in members[0].joined.members] == expected
    assert [member.member_id for member in bench.group.describe().members] == expected
    assert [each.member_id for each in bench.log.records[-1].value.members] == expected


def test_replaced_static_member_is_ordered_by_its_new_id(bench):
    members = bench.stable_static(*(f"i{number}" for number in range(14)))
    successor = bench.member(group_instance_id="i5").join()
    ids = [member.member_id for member in members if member.options["group_instance_id"] != "i5"]
    expected = hash_order([*ids, successor.member_id], string_hash, 32)
    assert expected[-1] != successor.member_id
    assert [each.member_id for each in bench.log.records[-1].value.members] == expected


def test_next_leader_is_first_in_java_table_order(bench):
    members = bench.stable_static(*(f"i{number}" for number in range(14)))
    others = [member.member_id for member in members if not member.is_leader]
    expected = hash_order(others, string_hash, 32)[0]
    assert expected != others[0]
    members[0].leave()
    assert bench.group.leader_id == expected


def test_member_table_does_not_shrink(bench):
    members = bench.stable_static(*(f"i{number}" for number in range(14)))
    ids = [member.member_id for member in members]
    for first, second in combinations(ids, 2):
        in_large, in_small = (hash_order([first, second], string_hash, size) for size in (32, 16))
        if in_large != in_small:
            break
    assert in_large != in_small, "the ids of this seed tell nothing"
    for member in members:
        if member.member_id not in in_large:
            member.leave()
    assert [member.member_id for member in bench.group.describe().members] == in_large
