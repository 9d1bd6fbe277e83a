"""Claims about OffsetDelete, DeleteGroups, DescribeGroups and ListGroups."""

import pytest

from broker_sim.coordinator.context import CoordinatorState
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.protocol import messages

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND
ALL_OPERATIONS = 3400
NOT_ASKED = -(2**31)


def codes(answer):
    return [(p.partition_index, p.error_code) for t in answer.topics for p in t.partitions]


def describe(user, *group_ids, version=6, broker=None, operations=False):
    request = messages.DescribeGroupsRequest(list(group_ids), operations and version >= 3)
    groups = user.ask(request, version, broker or user.leader(group_ids[0])).groups
    return {group.group_id: group for group in groups}


def test_deleted_offset_is_gone_and_the_others_stay(user):
    user.commit("g", {0: 5, 1: 7})
    answer = user.delete_offsets("g", [0, 9])
    assert (answer.error_code, codes(answer)) == (0, [(9, UNKNOWN), (0, 0)])
    assert user.fetch("g") == {("t", 1): 7}
    assert codes(user.delete_offsets("g", [0])) == [(0, 0)]


@pytest.mark.parametrize(("group_id", "partitions"), [("none", [0]), ("none", [9])])
def test_offsets_of_no_group_cannot_be_deleted(user, group_id, partitions):
    answer = user.delete_offsets(group_id, partitions)
    assert (answer.error_code, answer.topics) == (NOT_FOUND, [])


def test_offsets_of_the_empty_group_id_cannot_be_deleted(user):
    assert user.delete_offsets("", [0]).error_code == ErrorCode.INVALID_GROUP_ID


def test_other_broker_does_not_delete(user):
    wrong = user.leader("g") % 3 + 1
    assert user.delete_offsets("g", [0], wrong).error_code == ErrorCode.NOT_COORDINATOR
    assert user.delete_groups("g", broker=wrong) == {"g": ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_deleted_group_is_gone_with_its_offsets(user, version):
    user.commit("g", {0: 5, 1: 7})
    assert user.delete_groups("g", version=version) == {"g": 0}
    assert user.fetch("g") == {}
    assert user.listed() == {}
    assert user.delete_groups("g") == {"g": NOT_FOUND}


def test_groups_of_one_request_are_deleted_each_by_itself(user):
    here = [g for g in map(str, range(50)) if user.leader(g) == user.leader("0")][:4]
    elsewhere = next(g for g in map(str, range(50)) if user.leader(g) != user.leader("0"))
    for group_id in here[:3]:
        user.commit(group_id, {0: 1})
    results = user.delete_groups(*here, elsewhere, here[0])
    expected = dict.fromkeys(here[:3], 0)
    assert results == {**expected, here[3]: NOT_FOUND, elsewhere: ErrorCode.NOT_COORDINATOR}


def test_results_are_in_the_order_of_kafkas_partitions(make_user):
    # Seen on Kafka 4.3.1 with 50 partitions.
    user = make_user(brokers=1, offsets_topic_num_partitions=50, offsets_topic_replication_factor=1)
    request = messages.DescribeGroupsRequest(["probe", "none", "none-1", ""])
    groups = user.ask(request, 5, 1).groups
    assert [group.group_id for group in groups] == ["", "none", "none-1", "probe"]


@pytest.mark.parametrize("version", range(7))
def test_simple_group_is_described_as_empty(user, version):
    user.commit("g", {0: 5})
    group = describe(user, "g", version=version, operations=True)["g"]
    shown = (group.error_code, group.group_state, group.protocol_type, group.members)
    assert shown == (0, "Empty", "", [])
    assert group.authorized_operations == (ALL_OPERATIONS if version >= 3 else NOT_ASKED)


@pytest.mark.parametrize(
    ("version", "error_code", "text", "operations"),
    [(5, 0, None, ALL_OPERATIONS), (6, NOT_FOUND, "Group none not found.", NOT_ASKED)],
)
def test_group_that_does_not_exist_is_dead(user, version, error_code, text, operations):
    group = describe(user, "none", version=version, operations=True)["none"]
    assert (group.group_state, group.error_code, group.error_message) == ("Dead", error_code, text)
    assert group.authorized_operations == operations


def test_other_broker_does_not_describe(user):
    wrong = user.leader("g") % 3 + 1
    assert describe(user, "g", broker=wrong)["g"].error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", range(6))
def test_every_broker_lists_its_own_groups(user, version):
    for group_id in "abc":
        user.commit(group_id, {0: 5})
    for broker in (1, 2, 3):
        own = [group_id for group_id in "abc" if user.leader(group_id) == broker]
        found = user.listed(version, broker)
        assert sorted(found) == own
        for group in found.values():
            assert group.protocol_type == ""
            assert group.group_state == ("Empty" if version >= 4 else "")
            assert group.group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize(
    ("filters", "is_listed"),
    [
        ({"states_filter": [" eMPty"]}, True),
        ({"states_filter": ["Empty\0"]}, True),
        ({"states_filter": ["\u2003Empty"]}, False),
        ({"states_filter": ["Stable"]}, False),
        ({"states_filter": ["nonsense", "Empty"]}, True),
        ({"types_filter": ["Classic"]}, True),
        ({"types_filter": [" classic"]}, False),
        ({"types_filter": ["consumer"]}, False),
        ({"states_filter": ["Empty"], "types_filter": ["share"]}, False),
    ],
)
def test_filters_ignore_case(user, filters, is_listed):
    user.commit("g", {0: 5})
    assert list(user.listed(**filters)) == (["g"] if is_listed else [])


def test_broker_that_loads_a_partition_lists_nothing(user):
    user.commit("g", {0: 5})
    leader = user.leader("g")
    groups = user.cluster.nodes.brokers[leader].groups
    pending = user.send(messages.ListGroupsRequest(), 5, leader)
    groups.runtime.loaded()[0].state = CoordinatorState.LOADING
    user.cluster.run_until(lambda: pending.done)
    assert pending.response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert pending.response.groups == []


def test_groups_are_deleted_only_with_the_replicas(make_user):
    user = make_user(offsets_commit_timeout_ms=500)
    user.commit("g", {0: 5})
    leader = user.leader("g")
    (follower, _) = user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))
    user.cluster.pause(follower)
    user.cluster.advance(1)
    results = user.delete_groups("g", broker=leader)
    assert results == {"g": ErrorCode.COORDINATOR_NOT_AVAILABLE}


@pytest.mark.parametrize(
    ("partitions", "order"),
    [
        (7, [2, 11, 9, 7, 0, 1, 8, 5, 6, 10, 3, 4]),
        (50, [1, 9, 5, 4, 10, 0, 8, 3, 11, 7, 2, 6]),
    ],
)
def test_groups_are_listed_in_the_order_of_kafkas_tables(make_user, partitions, order):
    # Of a running 4.4.0 with one broker.
    user = make_user(1, offsets_topic_num_partitions=partitions)
    for number in range(12):
        user.commit(f"grp-{number}", {0: 1})
    assert list(user.listed()) == [f"grp-{number}" for number in order]
