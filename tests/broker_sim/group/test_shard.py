"""Tests of writes to a shard: replay, commit and errors."""

import random

import pytest

from broker_sim.coordinator.context import CoordinatorState
from broker_sim.coordinator.result import Result
from broker_sim.coordinator.storage import coordinator_error
from broker_sim.errors import ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.records import GroupRecord
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.protocol.record_batch import parse_header


def commit(offset, partition=0):
    key = record_messages.OffsetCommitKey("g", "t", partition)
    return GroupRecord(key, record_messages.OffsetCommitValue(offset))


def context_of(user, group_id="g"):
    return user.cluster.nodes.brokers[user.leader(group_id)].groups.runtime.find(group_id)


def write(context, records, on_done=print, **options):
    context.carry_out(Result(None, records, on_settled=on_done, **options), print, print)


def write_soon(context, records, on_done=print):
    write(context, records, on_done, shares_batch=True)


def offset_in(context):
    committed = context.shard.offsets.get("g", "t", 0)
    return None if committed is None else committed.offset


def test_record_is_replayed_at_once_and_answered_when_committed(user):
    context = context_of(user)
    done = []
    write(context, [commit(5)], done.append)
    assert (offset_in(context), done) == (5, [])
    user.cluster.advance(600)
    assert done == [ErrorCode.NONE]


def test_writes_complete_in_order(user):
    context = context_of(user)
    done = []
    for number in range(10):
        write(context, [commit(number)], lambda error, at=number: done.append((at, error)))
    user.cluster.advance(600)
    assert done == [(number, ErrorCode.NONE) for number in range(10)]


def test_write_with_a_single_replica_completes_at_once(make_user):
    user = make_user(brokers=1)
    context = context_of(user)
    done = []
    write(context, [commit(5)], done.append)
    assert done == [ErrorCode.NONE]


def test_empty_write_waits_for_earlier_writes(user):
    context = context_of(user)
    done = []
    write(context, [], lambda _: done.append("nothing before"))
    assert done == ["nothing before"]
    write(context, [commit(5)], lambda _: done.append("commit"))
    write(context, [], lambda _: done.append("nothing after"))
    assert done == ["nothing before"]
    user.cluster.advance(600)
    assert done == ["nothing before", "commit", "nothing after"]


def test_shard_knows_whether_all_is_committed(user):
    context = context_of(user)
    assert context.is_committed
    write_soon(context, [commit(5)], lambda _: None)
    assert not context.is_committed  # it is not even appended
    user.cluster.advance(0)
    assert context._storage.log_end_offset(context.partition) == 1
    assert not context.is_committed
    user.cluster.advance(600)
    assert context.is_committed
    context.state = CoordinatorState.CLOSED
    assert not context.is_committed


def test_failed_append_changes_nothing(user):
    context = context_of(user)
    write(context, [commit(5)], lambda _: None)
    user.cluster.advance(600)
    new = user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))[0]
    user.cluster.transfer_leadership(GROUP_METADATA_TOPIC, user.partition("g"), new)
    user.cluster.advance(10)
    done = []
    write(context, [commit(6)], done.append)
    assert (offset_in(context), done) == (5, [ErrorCode.NOT_COORDINATOR])
    assert not context.is_active


def test_write_in_flight_fails_when_the_leader_changes(user):
    context = context_of(user)
    first, second = user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))
    user.cluster.pause(first)
    done = []
    write(context, [commit(5)], done.append)
    user.cluster.transfer_leadership(GROUP_METADATA_TOPIC, user.partition("g"), second)
    user.cluster.advance(10)
    assert done == [ErrorCode.NOT_COORDINATOR]


def test_record_larger_than_the_topic_allows_is_not_written(make_user):
    user = make_user(brokers=1, message_max_bytes=1_000)
    context = context_of(user)
    key = record_messages.OffsetCommitKey("g", "t", 0)
    large = record_messages.OffsetCommitValue(5, metadata="x" * 2_000)
    done = []
    write(context, [GroupRecord(key, large)], done.append)
    assert (offset_in(context), done) == (None, [ErrorCode.UNKNOWN_SERVER_ERROR])


def batches_of(user, context):
    storage = user.cluster.nodes.brokers[user.leader("g")].groups.runtime.topic.storage
    return [parse_header(batch).records_count for batch in storage.read(context.partition)]


def test_commits_of_one_iteration_share_a_batch(make_user):
    user = make_user(brokers=1)
    context = context_of(user)
    done = []
    for number in range(3):
        write_soon(context, [commit(number), commit(number, 1)], done.append)
    assert (offset_in(context), batches_of(user, context), done) == (2, [], [])
    user.cluster.advance(1)
    assert (batches_of(user, context), done) == ([6], [ErrorCode.NONE] * 3)


def test_shared_batch_respects_the_maximum_size(make_user):
    user = make_user(brokers=1, message_max_bytes=1_000)
    context = context_of(user)
    done = []
    for number in range(5):
        key = record_messages.OffsetCommitKey("g", "t", number)
        value = record_messages.OffsetCommitValue(5, metadata="x" * 300)
        write_soon(context, [GroupRecord(key, value)], done.append)
    user.cluster.advance(1)
    assert (batches_of(user, context), done) == ([2, 2, 1], [ErrorCode.NONE] * 5)


def test_other_write_is_appended_after_earlier_commits(make_user):
    user = make_user(brokers=1)
    context = context_of(user)
    write_soon(context, [commit(5)], lambda _: None)
    write(context, [commit(6)], lambda _: None)
    assert (offset_in(context), batches_of(user, context)) == (6, [1, 1])
    user.cluster.advance(1)
    assert batches_of(user, context) == [1, 1]


@pytest.mark.parametrize(("codec", "is_reloaded"), [(0, False), (1, True)])
def test_oversized_commit_is_rejected_or_rolled_back(make_user, codec, is_reloaded):
    """The compressed size is only known after the records are replayed."""
    user = make_user(brokers=1, message_max_bytes=1_000, offsets_topic_compression_codec=codec)
    context = context_of(user)
    write(context, [commit(5)], lambda _: None)
    key = record_messages.OffsetCommitKey("g", "t", 0)
    noise = random.Random(1).randbytes(2_000).hex()
    done = []
    write_soon(context, [GroupRecord(key, record_messages.OffsetCommitValue(6, metadata=noise))], done.append)
    user.cluster.advance(1)
    assert done == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert context.is_active is not is_reloaded
    assert offset_in(context_of(user)) == 5


def test_offsets_of_kafka_0_8_are_loaded(user):
    context = context_of(user)
    key = record_messages.LegacyOffsetCommitKey("g", "t", 0)
    context.shard.replay(GroupRecord(key, record_messages.LegacyOffsetCommitValue(5, "m", 100)), 0)
    assert offset_in(context) == 5
    context.shard.replay(GroupRecord(key, None), 1)
    assert offset_in(context) is None


def test_offset_creates_a_simple_group_but_tombstone_does_not(user):
    context = context_of(user)
    key = record_messages.OffsetCommitKey("g", "t", 0)
    context.shard.replay(GroupRecord(key, None), 0)
    assert context.shard.groups == {}
    context.shard.replay(commit(5), 1)
    assert [group.group_type for group in context.shard.groups.values()] == ["classic"]


@pytest.mark.parametrize(
    ("error_code", "told"),
    [
        (ErrorCode.NONE, ErrorCode.NONE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_append_errors_are_mapped_as_in_kafka(error_code, told):
    assert coordinator_error(error_code) is told
