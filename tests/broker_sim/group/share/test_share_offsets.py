"""Tests of describing, altering and deleting offsets of share groups, and of deleted groups and topics."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.other_brokers import LatestOffset
from broker_sim.group.share.persister_calls import topics_in_order
from broker_sim.metadata.topic_partition import TopicPartition

NONE = ErrorCode.NONE


@pytest.fixture
def ident(shares):
    """Return the id of the topic of an empty group with state."""
    ident = shares.bench.set_topic("t", 2)
    member = shares.member("a", "t")
    member.join()
    shares.settle(member)
    member.leave()
    return ident


def rows(group):
    return {
        topic.topic_name: [(row.partition_index, row.start_offset, row.lag, row.error_code) for row in topic.partitions]
        for topic in group.topics
    }


def test_lag_counts_records_after_the_start_offset(shares, ident):
    key = shares.key(ident, 0)
    state = shares.states.states[key]
    shares.states.states[key] = state._replace(start_offset=10, delivery_complete_count=2, leader_epoch=4)
    shares.bench.latest[TopicPartition("t", 0)] = LatestOffset(17)
    group = shares.offsets()
    assert rows(group) == {"t": [(0, 10, 5, NONE), (1, -1, -1, NONE)]}
    assert group.topics[0].partitions[0].leader_epoch == 4


def test_missing_leader_is_a_partition_error(shares, ident):
    shares.alter(("t", {0: 3}))
    shares.bench.latest[TopicPartition("t", 0)] = LatestOffset(-1, ErrorCode.LEADER_NOT_AVAILABLE)
    group = shares.offsets(("t", [0]))
    assert rows(group) == {"t": [(0, 0, -1, ErrorCode.LEADER_NOT_AVAILABLE)]}
    text = group.topics[0].partitions[0].error_message
    assert text.startswith("There is no leader for this topic-partition")


def test_unreadable_state_is_not_an_error(shares, ident):
    shares.states.errors[shares.key(ident, 0)] = ErrorCode.NOT_COORDINATOR
    assert rows(shares.offsets(("t", [0]), ("none", [3]))) == {"none": [(3, -1, -1, NONE)], "t": [(0, -1, -1, NONE)]}


def test_partitions_are_distinct_in_kafkas_order(shares, ident):
    group = shares.offsets(("t", [33, 17, 5, 0, 0]), ("t", [3, 16]))
    assert [row.partition_index for row in group.topics[0].partitions] == [16, 0, 17, 33, 3, 5]
    assert len(group.topics) == 1


@pytest.mark.parametrize(
    ("topics", "group_id"), [([("t", [])], "share"), ([("t", [0, -1])], "share"), ([("t", [0])], "")]
)
def test_requests_that_kafkas_persister_rejects_fail(shares, ident, topics, group_id):
    failed = shares.offsets(*topics, group_id=group_id)
    assert isinstance(failed, ApiError)
    assert failed.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    unknown = [("none", numbers) for _, numbers in topics]
    assert shares.offsets(*unknown, group_id=group_id).error_code == NONE


def test_negative_partition_cannot_be_altered(shares, ident):
    before = dict(shares.states.states)
    failed = shares.alter(("t", {0: 7, -1: 1}))
    assert failed.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    _, topic_id, _ = shares.key(ident, 0).coordinator_key().split(":")
    assert failed.error_message == (f"Initialize share group parameters has invalid partitionId - share {topic_id} -1")
    assert shares.states.states == before


def test_offsets_are_altered(shares, ident):
    response = shares.alter(("t", {0: 7, 5: 1}))
    assert response.error_code == NONE
    assert [(row.partition_index, row.error_code) for row in response.responses[0].partitions] == [
        (0, NONE),
        (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert response.responses[0].topic_id == ident
    assert shares.states.states[shares.key(ident, 0)].start_offset == 7


def test_altering_creates_a_group(shares):
    ident = shares.bench.set_topic("t", 1)
    assert shares.alter(("t", {0: 7})).error_code == NONE
    assert shares.group.state_partitions.initialized[ident].partitions == {0}
    assert rows(shares.offsets()) == {"t": [(0, 7, -7, NONE)]}


def test_share_coordinator_error_is_a_partition_error(shares, ident):
    shares.states.errors[shares.key(ident, 1)] = ErrorCode.FENCED_STATE_EPOCH
    response = shares.alter(("t", {0: 7, 1: 7}))
    assert [(row.error_code, row.error_message) for row in response.responses[0].partitions] == [
        (NONE, None),
        (ErrorCode.FENCED_STATE_EPOCH, "why"),
    ]


def test_group_with_members_keeps_its_offsets(shares):
    shares.bench.set_topic("t", 1)
    shares.member("a", "t").join()
    for error in (shares.alter(("t", {0: 1})), shares.delete("t")):
        assert isinstance(error, ApiError)
        assert error.error_code == ErrorCode.NON_EMPTY_GROUP
    assert shares.delete_group() == {"share": ErrorCode.NON_EMPTY_GROUP}


def test_offsets_are_deleted(shares, ident):
    shares.bench.set_topic("u", 1)
    response = shares.delete("t", "u", "none")
    assert response.error_code == NONE
    assert [(row.topic_name, row.topic_id, row.error_code) for row in response.responses] == [
        ("t", ident, NONE),
        ("u", bytes(16), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", bytes(16), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert shares.states.states == {}
    assert rows(shares.offsets()) == {}


def test_failed_deletion_leaves_the_topic_deleting(shares, ident):
    key = shares.key(ident, 1)
    shares.states.errors[key] = ErrorCode.NOT_COORDINATOR
    response = shares.delete("t")
    assert [(row.topic_name, row.error_code) for row in response.responses] == [("t", ErrorCode.NOT_COORDINATOR)]
    assert shares.group.state_partitions.deleting == {ident}
    del shares.states.errors[key]
    assert shares.delete("t").responses[0].error_code == NONE
    assert shares.group.state_partitions.deleting == frozenset()


@pytest.mark.parametrize("group_id", ["", "none"])
def test_offsets_of_unknown_group_cannot_be_deleted(shares, group_id):
    expected = ErrorCode.GROUP_ID_NOT_FOUND if group_id else ErrorCode.INVALID_GROUP_ID
    assert shares.delete("t", group_id=group_id).error_code == expected


def test_group_is_deleted_with_its_state(shares, ident):
    assert shares.delete_group("share", "none") == {"share": NONE, "none": ErrorCode.GROUP_ID_NOT_FOUND}
    assert shares.states.states == {}
    assert shares.group is None


def test_group_is_kept_if_its_state_cannot_be_deleted(shares, ident):
    shares.states.errors[shares.key(ident, 1)] = ErrorCode.NOT_COORDINATOR
    assert shares.delete_group() == {"share": ErrorCode.NOT_COORDINATOR}
    assert shares.group is not None
    shares.states.errors.clear()
    assert shares.delete_group() == {"share": NONE}


def test_deleted_topic_is_removed(shares, ident):
    shares.bench.delete_topic("t")
    context = shares.bench.context
    context.perform(lambda: context.shard.share_states.topics_deleted({ident}))
    assert shares.group.state_partitions.initialized == {}


def test_group_with_a_topic_without_partitions_is_deleted_by_the_second_attempt(shares, ident):
    # Kafka's persister refuses the first one; what it was to delete is all of the topic then.
    other = shares.bench.set_topic("other", 1)
    shares.alter(("t", {0: 3}), ("other", {5: 1}))
    assert shares.delete_group() == {"share": ErrorCode.UNKNOWN_SERVER_ERROR}
    assert shares.group.state_partitions.deleting == {ident, other}
    assert len(shares.states.states) == 2
    assert shares.delete_group() == {"share": NONE}
    assert shares.states.states == {}


def test_group_with_nothing_but_topics_without_partitions_is_deleted(shares):
    shares.bench.set_topic("t", 1)
    shares.alter(("t", {5: 1}))
    assert shares.delete_group() == {"share": NONE}
    assert shares.group is None


def test_group_is_kept_for_the_error_of_the_last_topic(shares, ident):
    idents = [ident, *(shares.bench.set_topic(name, 1) for name in "uvw")]
    shares.alter(*((name, {0: 1}) for name in "tuvw"))
    codes = (ErrorCode.NOT_COORDINATOR, ErrorCode.FENCED_STATE_EPOCH)
    first, *_, last = topics_in_order(idents)
    for topic_id, code in zip((first, last), codes, strict=True):
        shares.states.errors[shares.key(topic_id, 0)] = code
    assert shares.delete_group() == {"share": codes[1]}


@pytest.mark.parametrize("backwards", [False, True])
def test_failed_groups_are_in_kafkas_order(shares, backwards):
    shares.bench.set_topic("t", 1)
    groups = ["zz", "aa", "mm", "b", "Q"]
    for group_id in groups:
        shares.member("a", "t").join(group_id=group_id)
    errors = shares.delete_group(*(reversed(groups) if backwards else groups))
    first = ["mm", "aa", "zz"] if backwards else ["zz", "aa", "mm"]  # these are in one bucket
    assert list(errors) == [*first, "Q", "b"]
    assert set(errors.values()) == {ErrorCode.NON_EMPTY_GROUP}


def test_last_entry_of_a_duplicate_topic_is_used(shares, ident):
    shares.states.errors[shares.key(ident, 0)] = ErrorCode.FENCED_STATE_EPOCH
    response = shares.alter(("t", {0: 7}), ("t", {1: 8}))
    assert len(response.responses) == 2
    assert shares.group.state_partitions.initializing[ident].partitions == {1}


@pytest.mark.parametrize(
    ("start_offset", "lag"), [(-5, 22), (30, -13), (-(1 << 63), -(1 << 63) + 17), (1 << 62, 17 - (1 << 62))]
)
def test_lag_wraps_around_as_in_java(shares, ident, start_offset, lag):
    shares.alter(("t", {0: start_offset}))
    shares.bench.latest[TopicPartition("t", 0)] = LatestOffset(17)
    assert rows(shares.offsets(("t", [0]))) == {"t": [(0, start_offset, lag, NONE)]}


def test_first_negative_partition_of_kafkas_hash_map_is_named(shares, ident):
    failed = shares.alter(("t", {-2: 7, 0: 1, -1: 1}))
    assert failed.error_message.endswith(" -1")
