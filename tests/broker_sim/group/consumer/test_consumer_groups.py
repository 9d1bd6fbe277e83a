"""Tests of members that join, reconcile, leave and are fenced; the behaviour was observed on Kafka 4.3.1."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer import subscription
from broker_sim.group.offsets import OffsetCommit, OffsetToCommit

SESSION_MS = 45_000
RETENTION_MS = 7 * 24 * 3_600_000


def settle(*members, rounds=6):
    """Send heartbeats of all members until nothing changes."""
    for _ in range(rounds):
        for member in members:
            assert member.beat() == ErrorCode.NONE


def test_full_request_gets_the_assignment_again(bench):
    bench.set_topic("a", 3)
    member = bench.consumer("m1", "a")
    member.join()
    member.beat(rebalance_timeout_ms=60_000, subscribed_topic_names=["a"])
    assert len(member.answer.assignment.topic_partitions[0].partitions) == 3


# -- static members -------------------------------------------------------------------------------


def test_returning_static_member_gets_its_partitions_at_once(bench):
    bench.set_topic("a", 4)
    first = bench.consumer("m1", "a", instance_id="i1")
    second = bench.consumer("m2", "a")
    first.join()
    second.join()
    settle(first, second)
    owned = first.partitions
    assert first.leave(-2) == ErrorCode.NONE
    group_epoch = bench.group.group_epoch
    back = bench.consumer("m3", "a", instance_id="i1")
    assert back.join() == ErrorCode.NONE
    assert back.partitions == owned
    assert bench.group.group_epoch == group_epoch, "no rebalance"
    assert list(bench.group.members) == ["m2", "m3"]


def test_instance_id_in_use_is_unreleased(bench):
    bench.set_topic("a", 4)
    bench.consumer("m1", "a", instance_id="i1").join()
    other = bench.consumer("m2", "a", instance_id="i1")
    assert other.join() == ErrorCode.UNRELEASED_INSTANCE_ID


def test_replaced_static_member_is_fenced(bench):
    bench.set_topic("a", 4)
    first = bench.consumer("m1", "a", instance_id="i1")
    first.join()
    first.leave(-2)
    bench.consumer("m2", "a", instance_id="i1").join()
    first.epoch = 2
    assert first.beat() == ErrorCode.FENCED_INSTANCE_ID


def test_static_member_that_does_not_return_is_fenced(bench):
    bench.set_topic("a", 4)
    first = bench.consumer("m1", "a", instance_id="i1")
    first.join()
    first.leave(-2)
    bench.advance(SESSION_MS)
    assert bench.group.is_empty


# -- subscriptions ----------------------------------------------------------------------------------


def test_expression_is_resolved_after_the_heartbeat(bench):
    bench.set_topic("orders-1", 1)
    bench.set_topic("bills", 1)
    member = bench.consumer("m1", subscribed_topic_regex="orders-.*")
    member.join()
    assert member.partitions == {}
    bench.run_later()
    member.beat()
    assert member.partitions == {"orders-1": [0]}


def test_slow_expression_is_resolved_outside_the_loop(bench):
    for number in range(20):
        bench.set_topic(f"orders-{number}", 1)
    member = bench.consumer("m1", subscribed_topic_regex=f"orders-1|{'(?:.?x)' * 400}")
    member.join()
    bench.run_later()
    member.beat()
    assert member.partitions == {}
    ((match, on_done),) = bench.pending_work
    on_done(match())
    member.beat()
    assert member.partitions == {"orders-1": [0]}


@pytest.mark.parametrize(("most_characters", "at_once"), [(8, True), (7, False)])
def test_long_expressions_are_compiled_outside_the_loop(bench, monkeypatch, most_characters, at_once):
    monkeypatch.setattr(subscription, "MAX_CHARACTERS", most_characters)
    bench.set_topic("orders-1", 1)
    member = bench.consumer("m1", subscribed_topic_regex="orders-1")
    member.join()
    bench.run_later()
    assert bool(bench.pending_work) is not at_once
    for match, on_done in bench.pending_work:
        on_done(match())
    member.beat()
    assert member.partitions == {"orders-1": [0]}


def test_new_topics_are_matched(bench):
    bench.set_topic("orders-1", 1)
    member = bench.consumer("m1", subscribed_topic_regex="orders-.*")
    member.join()
    bench.run_later()
    bench.advance(10_001)
    bench.set_topic("orders-2", 1)
    member.beat()
    bench.run_later()
    member.beat()
    assert member.partitions == {"orders-1": [0], "orders-2": [0]}


def test_expressions_are_refreshed_at_most_every_ten_seconds(bench):
    member = bench.consumer("m1", subscribed_topic_regex="orders-.*")
    member.join()
    bench.run_later()
    bench.set_topic("orders-1", 1)
    bench.advance(10_000)
    member.beat()
    bench.run_later()
    member.beat()
    assert member.partitions == {}
    bench.advance(1)
    member.beat()
    bench.run_later()
    member.beat()
    assert member.partitions == {"orders-1": [0]}


def test_expressions_are_resolved_again_after_their_refresh_interval(make_bench):
    bench = make_bench(group_consumer_regex_refresh_interval_ms=20_000)
    member = bench.consumer("m1", subscribed_topic_regex="orders-.*")
    member.join()
    resolved_ms = []
    for after_ms in (0, 20_000, 1):
        bench.advance(after_ms)
        member.beat()
        bench.run_later()
        resolved_ms.append(bench.group.resolved["orders-.*"].timestamp_ms)
    assert [at_ms - resolved_ms[0] for at_ms in resolved_ms] == [0, 0, 20_001]


def test_invalid_expression_is_rejected(bench):
    member = bench.consumer("m1", subscribed_topic_regex="orders-[")
    assert member.join() == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert member.answer.error_message == (
        "SubscribedTopicRegex `orders-[` is not a valid regular expression: missing closing ]."
    )


# -- targets --------------------------------------------------------------------------------------


def test_members_choose_the_assignor_by_majority(bench):
    bench.set_topic("a", 3)
    for number, assignor in enumerate(["range", "range", "uniform"]):
        bench.consumer(f"m{number}", "a", server_assignor=assignor).join()
    assert bench.describe().assignor_name == "range"
    targets = {m.member_id: m.target_assignment for m in bench.describe().members}
    numbers = [targets[f"m{number}"].topic_partitions[0].partitions for number in range(3)]
    assert numbers == [[0], [1], [2]]


# -- the log --------------------------------------------------------------------------------------


# -- offsets --------------------------------------------------------------------------------------


def commit_error(bench, member, epoch, topic=None, partition=0, version=9):
    """Return the error of a commit of one partition."""
    commit = OffsetCommit(bench.group.group_id, member, None, epoch, version, [])
    try:
        check = bench.group.validate_offset_commit(commit, is_transactional=False)
        if check is not None:
            check("a", topic, partition)
    except ApiError as error:
        return error.error_code
    return ErrorCode.NONE


def test_commit_needs_the_members_epoch(bench):
    topic = bench.set_topic("a", 2)
    member = bench.consumer("m1", "a")
    member.join()
    assert commit_error(bench, "m1", 2) == ErrorCode.NONE
    assert commit_error(bench, "m1", 3) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit_error(bench, "m1", 1, topic) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit_error(bench, "m1", 2, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert commit_error(bench, "m2", 2) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [
        (None, -1, None),
        (None, 0, ErrorCode.UNKNOWN_SERVER_ERROR),
        (None, 2, ErrorCode.UNKNOWN_SERVER_ERROR),
        ("", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m2", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m1", 2, None),
        ("m1", 3, ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_offset_fetch_needs_member_and_epoch_or_neither(bench, member, epoch, code):
    # Seen on Kafka 4.3.1.
    bench.set_topic("a", 2)
    bench.consumer("m1", "a").join()
    if code is None:
        bench.group.validate_offset_fetch(member, epoch)
        return
    with pytest.raises(ApiError) as refused:
        bench.group.validate_offset_fetch(member, epoch)
    assert refused.value.error_code is code


def test_older_epoch_may_commit_owned_partitions(bench):
    topic = bench.set_topic("a", 2)
    member = bench.consumer("m1", "a")
    member.join()
    bench.set_topic("a", 3)
    member.beat()
    assert member.epoch == 3
    assert commit_error(bench, "m1", 2, topic, 0) == ErrorCode.NONE
    assert commit_error(bench, "m1", 2, topic, 2) == ErrorCode.STALE_MEMBER_EPOCH


def test_offsets_of_subscribed_topics_do_not_expire(bench):
    bench.set_topic("a", 1)
    member = bench.consumer("m1", "a")
    member.join()
    offsets = [OffsetToCommit(topic, bytes(16), 0, 5, -1, "") for topic in ("a", "b")]
    metadata = bench.shard.offset_metadata
    commit = OffsetCommit(bench.group.group_id, "m1", None, member.epoch, 9, offsets)
    bench.write(metadata.commit(commit).records)
    bench.clock.advance(RETENTION_MS - 1)
    assert metadata.expire().records == []
    bench.clock.advance(1)
    assert [record.key.topic for record in metadata.expire().records] == ["b"]
