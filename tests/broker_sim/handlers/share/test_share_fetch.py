"""ShareFetch: what is acquired, when it is answered, and what the member is told. See also share/partition/."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.share.partition.share_partitions import MAX_SEPARATE_TRIES
from tests.broker_sim.handlers.share.conftest import VERSION, WAIT_MS, acquisitions, answers, batches_of
from tests.broker_sim.share.named_values import acquired

LOCK_MS = 30_000
ACCEPT, RELEASE, RENEW = 1, 2, 4
UNKNOWN_ID = b"x" * 16


def parked(bench):
    return bench.broker.purgatories.share_fetch.num_delayed()


# -- waiting --------------------------------------------------------------------------------------


def test_fetch_waits_its_time_for_records(bench):
    member = bench.member()
    pending = member.fetch(max_wait_ms=2_000)
    bench.cluster.advance(1_999)
    assert parked(bench) == 1
    assert not pending.done
    assert acquisitions(bench.wait(pending)) == {}
    assert pending.elapsed_ms == 2_000
    assert parked(bench) == 0


def test_high_watermark_wakes_a_fetch(bench):
    member = bench.member()
    pending = member.fetch(max_wait_ms=20_000)
    bench.cluster.advance(700)
    bench.produce(3)
    assert acquisitions(bench.wait(pending)) == {0: [acquired(0, 2)]}
    assert pending.elapsed_ms == 700
    assert batches_of(answers(pending)[0]) == [(0, 2)]
    assert pending.response.acquisition_lock_timeout_ms == LOCK_MS


def test_first_partition_with_records_completes_the_first_fetch(make_bench):
    bench = make_bench(partitions=3)
    for partition in (1, 2):
        bench.produce(partition=partition)
    member = bench.member(opens=False)
    assert member.fetched() == {1: [acquired(0, 0)]}
    assert member.fetched() == {2: [acquired(0, 0)]}


def test_first_fetch_of_very_many_partitions_is_tried_once(make_bench):
    count = MAX_SEPARATE_TRIES + 1
    bench = make_bench(partitions=count)
    for partition in (1, 2):
        bench.produce(partition=partition)
    member = bench.member(opens=False)
    assert member.fetched() == {1: [acquired(0, 0)], 2: [acquired(0, 0)]}


def test_high_watermark_that_followers_move_wakes_a_fetch(make_bench):
    bench = make_bench(brokers=3)
    member = bench.member()
    bench.cluster.pause(2)
    pending = member.fetch(max_wait_ms=20_000)
    bench.cluster.advance(0)
    bench.produce(acks=1)
    bench.cluster.advance(1_000)
    assert not pending.done
    bench.cluster.resume(2)
    assert acquisitions(bench.wait(pending)) == {0: [acquired(0, 0)]}
    assert 1_000 <= pending.elapsed_ms < 2_000


def test_records_whose_lock_is_over_wake_a_fetch_to_the_millisecond(bench):
    first, second = bench.member("first"), bench.member("second")
    bench.produce(5)
    assert first.fetched() == {0: [acquired(0, 4)]}
    bench.cluster.advance(1_000)
    pending = second.fetch(max_wait_ms=60_000)
    assert acquisitions(bench.wait(pending)) == {0: [acquired(0, 4, deliveries=2)]}
    assert pending.elapsed_ms == LOCK_MS - 1_000


def test_released_records_are_not_announced_as_in_kafka(bench):
    """Waiting fetches are tried when the release is being written, and not when it is written."""
    first, second = bench.member("first"), bench.member("second")
    bench.produce(5)
    first.fetched()
    pending = second.fetch(max_wait_ms=5_000)
    bench.cluster.advance(300)
    assert first.acknowledged({0: [(1, 2, RELEASE)]}) == {0: 0}
    assert acquisitions(bench.wait(pending)) == {0: [acquired(1, 2, deliveries=2)]}
    assert pending.elapsed_ms == 5_000


@pytest.mark.parametrize("how", ["final epoch", "disconnect"])
def test_end_of_a_session_releases_its_records(bench, how):
    first, second = bench.member("first"), bench.member("second")
    bench.produce(5)
    first.fetched()
    if how == "disconnect":
        first.disconnect()
        bench.cluster.advance(0)
        expected = [acquired(0, 4, deliveries=2)]
    else:
        first.epoch = -1
        assert first.acknowledged({0: [(0, 1, ACCEPT)]}) == {0: 0}
        expected = [acquired(2, 4, deliveries=2)]
    pending = bench.wait(second.fetch(max_wait_ms=20_000))
    assert (acquisitions(pending), pending.elapsed_ms) == ({0: expected}, 0)


def test_start_offset_that_moves_makes_room_and_wakes_a_fetch(make_bench):
    bench = make_bench(group_configs={"share_partition_max_record_locks": "100"})
    member, other = bench.member(), bench.member("other")
    bench.produce(100)
    bench.produce(10)
    assert member.fetched() == {0: [acquired(0, 99)]}
    pending = other.fetch(max_wait_ms=20_000)
    bench.cluster.advance(300)
    assert not pending.done
    assert member.acknowledged({0: [(0, 99, ACCEPT)]}) == {0: 0}
    assert acquisitions(bench.wait(pending)) == {0: [acquired(100, 109)]}
    assert pending.elapsed_ms == 300


def test_released_fetch_lock_wakes_a_fetch(bench):
    """Two members wait; the record of a produce wakes the first, the next one the second."""
    first, second = bench.member("first"), bench.member("second")
    pending = [first.fetch(max_wait_ms=20_000), second.fetch(max_wait_ms=20_000)]
    bench.cluster.advance(100)
    assert parked(bench) == 2
    bench.produce()
    bench.cluster.advance(0)
    assert [one.done for one in pending] == [True, False]
    bench.produce()
    bench.cluster.advance(0)
    assert [acquisitions(one) for one in pending] == [{0: [acquired(0, 0)]}, {0: [acquired(1, 1)]}]


def test_fetch_that_leaves_records_wakes_another_one_for_them(bench):
    first, second, third = (bench.member(name) for name in ("first", "second", "third"))
    bench.produce(5)
    first.fetched()
    pending = second.fetch(max_wait_ms=5_000)
    bench.cluster.advance(300)
    assert first.acknowledged({0: [(1, 2, RELEASE)]}) == {0: 0}
    assert third.fetched(max_records=1, share_acquire_mode=1) == {0: [acquired(1, 1, deliveries=2)]}
    assert acquisitions(bench.wait(pending)) == {0: [acquired(2, 2, deliveries=2)]}
    assert pending.elapsed_ms == 300


def test_min_bytes_are_those_of_all_partitions(make_bench):
    bench = make_bench(partitions=2)
    member = bench.member()
    pending = member.fetch(max_wait_ms=20_000, min_bytes=140)
    bench.cluster.advance(100)
    bench.produce()
    bench.cluster.advance(100)
    assert not pending.done
    bench.produce(partition=1)
    assert acquisitions(bench.wait(pending)) == {0: [acquired(0, 0)], 1: [acquired(0, 0)]}
    assert pending.elapsed_ms == 200


def test_min_bytes_may_be_just_there(bench):
    member = bench.member()
    bench.produce(3)
    bench.produce(3)
    size = len(answers(bench.wait(member.fetch(max_records=3)))[0].records)
    for min_bytes, elapsed_ms, deliveries in ((size + 1, WAIT_MS, 1), (size, 0, 2)):
        pending = bench.wait(member.fetch(min_bytes=min_bytes))
        assert acquisitions(pending) == {0: [acquired(3, 5, deliveries)]}
        assert pending.elapsed_ms == elapsed_ms
        member.acknowledged({0: [(3, 5, RELEASE)]})


def test_fetch_without_partitions_is_answered_at_once_by_share_fetch(bench):
    member = bench.member()
    bench.produce()
    for nothing in ({"max_records": 0}, {"max_bytes": 0}):
        pending = bench.wait(member.fetch(**nothing))
        assert (pending.elapsed_ms, answers(pending)) == (0, {})
    assert member.fetched() == {0: [acquired(0, 0)]}


# -- what is acquired -----------------------------------------------------------------------------


def test_response_has_the_batches_of_the_acquired_records(bench):
    member = bench.member()
    for _ in range(4):
        bench.produce(5)
    pending = bench.wait(member.fetch(max_records=6))
    assert acquisitions(pending) == {0: [acquired(0, 9)]}
    assert batches_of(answers(pending)[0]) == [(0, 4), (5, 9)]
    pending = bench.wait(member.fetch(max_records=7, share_acquire_mode=1))
    assert acquisitions(pending) == {0: [acquired(10, 16)]}
    assert batches_of(answers(pending)[0]) == [(10, 14), (15, 19)]


def test_records_are_shared_out_among_partitions(make_bench):
    bench = make_bench(partitions=2)
    member = bench.member()
    for number in (0, 1):
        bench.produce(5, partition=number)
    assert member.fetched(max_records=5) == {1: [acquired(0, 4)]}
    assert member.fetched(max_records=5) == {0: [acquired(0, 4)]}


def test_another_group_gets_the_records_too(bench):
    bench.begin("other", 0)
    member, other = bench.member(), bench.member("member", "other")
    bench.produce(2)
    assert member.fetched() == other.fetched() == {0: [acquired(0, 1)]}


def test_log_that_starts_later_is_followed(bench):
    member = bench.member()
    bench.produce(5)
    bench.produce(5)
    bench.delete_records(7)
    pending = bench.wait(member.fetch())
    assert (acquisitions(pending), pending.elapsed_ms) == ({}, 0)
    assert member.fetched() == {0: [acquired(7, 9)]}


def test_share_state_survives_a_leader_change(make_bench):
    """What was acquired and not acknowledged is delivered again, as if it never was."""
    bench = make_bench(brokers=2)
    member = bench.member()
    bench.produce(10)
    member.fetched()
    assert member.acknowledged({0: [(0, 4, ACCEPT), (5, 5, RELEASE)]}) == {0: 0}
    bench.cluster.transfer_leadership("topic", 0, 2)
    bench.cluster.advance(1_000)
    assert bench.share_partition() is None
    other = bench.member("other", broker=2, opens=False)
    assert other.fetched(max_wait_ms=10_000) == {0: [acquired(5, 5, deliveries=2), acquired(6, 9)]}


def test_former_leader_returns_not_leader(make_bench):
    bench = make_bench(brokers=2)
    member = bench.member()
    bench.produce(5)
    member.fetched()
    pending = member.fetch(max_wait_ms=3_000)
    bench.cluster.advance(100)
    bench.cluster.transfer_leadership("topic", 0, 2)
    assert answers(bench.wait(pending)) == {}
    assert pending.elapsed_ms == 3_000
    assert member.acknowledged({0: [(0, 4, ACCEPT)]}) == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert answers(bench.wait(member.fetch()))[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# -- acknowledging in a fetch ---------------------------------------------------------------------


def test_fetch_acknowledges_first(bench):
    member = bench.member()
    bench.produce(3)
    member.fetched()
    pending = bench.wait(member.fetch(acknowledges={0: [(0, 1, ACCEPT), (2, 2, RELEASE)]}))
    answer = answers(pending)[0]
    assert (answer.acknowledge_error_code, answer.acknowledge_error_message) == (0, None)
    assert acquisitions(pending) == {0: [acquired(2, 2, deliveries=2)]}
    assert pending.elapsed_ms == 0


def test_failed_acknowledgement_is_returned_beside_acquired_records(bench):
    member = bench.member()
    bench.produce(3)
    pending = bench.wait(member.fetch(acknowledges={0: [(0, 0, ACCEPT)], 7: [(0, 0, ACCEPT)]}))
    assert acquisitions(pending) == {0: [acquired(0, 2)]}
    first, unknown = answers(pending)[0], answers(pending)[7]
    assert first.acknowledge_error_code == ErrorCode.INVALID_RECORD_STATE
    assert "not found in the cache" in first.acknowledge_error_message
    assert unknown.acknowledge_error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert unknown.acknowledge_error_message is None
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_renewal_fetches_nothing(bench):
    member = bench.member()
    bench.produce(3)
    member.fetched()
    bench.produce(3)
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    renewal = {"acknowledges": {0: [(0, 2, RENEW)]}, "is_renew_ack": True}
    bench.cluster.advance(20_000)
    pending = bench.wait(member.fetch(**renewal, **nothing))
    assert answers(pending)[0].acknowledge_error_code == 0
    assert acquisitions(pending) == {}
    bench.cluster.advance(LOCK_MS - 1)
    assert bench.share_partition().records.batches.first.batch_state.member_id == "member"
    for wanted in nothing:
        pending = bench.wait(member.fetch(**renewal, **{**nothing, wanted: 1}))
        assert pending.response.error_code == ErrorCode.INVALID_REQUEST
        member.epoch -= 1


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "member_id"), [(None, "member"), ("share", ""), ("share", None), ("share", "m" * 37)]
)
def test_request_without_a_valid_group_or_member(bench, group, member_id):
    member = bench.member(member_id, group, opens=False)
    pending = bench.wait(member.fetch())
    assert pending.response.error_code == ErrorCode.INVALID_REQUEST


def test_unknown_share_session_is_refused(bench):
    member = bench.member(opens=False)
    member.epoch = 3
    pending = bench.wait(member.fetch())
    assert pending.response.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_full_session_cache_is_reported_after_the_wait(make_bench):
    bench = make_bench(group_share_max_share_sessions="1", group_share_max_size="1")
    bench.member()
    pending = bench.wait(bench.member("other", opens=False).fetch(max_wait_ms=700))
    assert pending.response.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert pending.elapsed_ms == 700


def test_partition_that_does_not_exist(bench):
    member = bench.member()
    pending = bench.wait(member.fetch([7]))
    assert answers(pending)[7].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert pending.elapsed_ms == 500


def test_topic_that_does_not_exist(bench):
    member = bench.member()
    pending = bench.wait(member.fetch([0], topic_id=UNKNOWN_ID))
    assert pending.response.error_code == ErrorCode.NONE
    ((partition,),) = [topic.partitions for topic in pending.response.responses]
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_topic_that_is_deleted_while_a_fetch_waits(bench):
    member = bench.member()
    pending = member.fetch(max_wait_ms=3_000)
    bench.cluster.advance(100)
    bench.cluster.delete_topic("topic")
    bench.cluster.advance(100)
    assert bench.share_partition() is None
    assert answers(bench.wait(pending)) == {}
    assert pending.elapsed_ms == 3_000


def test_broker_that_does_not_lead_the_partition_returns_the_leader(make_bench):
    bench = make_bench(brokers=2)
    member = bench.member(broker=2, opens=False)
    pending = bench.wait(member.fetch())
    answer = answers(pending)[0]
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 0)
    assert [endpoint.node_id for endpoint in pending.response.node_endpoints] == [1]


def test_acquire_mode_that_does_not_exist(bench):
    member = bench.member()
    pending = bench.wait(member.fetch(share_acquire_mode=2))
    assert pending.response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_fetch_that_fails_leaves_the_share_partition_to_others(bench):
    member, other = bench.member(), bench.member("other")
    bench.produce(5)
    pending = bench.wait(member.fetch(max_bytes=-1))
    assert answers(pending)[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert pending.elapsed_ms == 0
    assert other.fetched() == {0: [acquired(0, 4)]}


def test_acknowledgement_that_kafka_does_not_expect_fails_the_fetch(bench):
    member = bench.member()
    bench.produce(5)
    member.fetched()
    assert member.acknowledged({0: [(0, 4, ACCEPT)]}) == {0: 0}
    pending = bench.wait(member.fetch(acknowledges={0: [(4, 5, ACCEPT)]}))
    assert pending.response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert answers(pending) == {}
    bench.produce(5)
    assert member.fetched() == {0: [acquired(5, 9)]}


def test_group_without_a_name_fails_at_once(bench):
    member = bench.member(group="", opens=False)
    pending = bench.wait(member.fetch())
    assert answers(pending)[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert pending.elapsed_ms == 0


def test_version_1_limits_no_records(bench):
    member = bench.member()
    bench.produce(5)
    assert member.fetched(max_records=2, version=VERSION - 1) == {0: [acquired(0, 4)]}


def test_cluster_without_share_groups(bench):
    member = bench.member()
    bench.produce()
    bench.set_share_version(0)
    assert len(bench.broker.share_partitions.partitions) == 0
    assert len(bench.broker.share_partitions.sessions) == 0
    pending = bench.wait(member.fetch())
    assert pending.response.error_code == ErrorCode.UNSUPPORTED_VERSION
    pending = bench.wait(member.acknowledge({0: [(0, 0, ACCEPT)]}))
    assert pending.response.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_member_that_has_read_too_much_is_answered_empty_and_keeps_the_records(bench):
    member, other = bench.member(), bench.member("other")
    bench.produce(100)
    bench.limit(consumer_byte_rate=50)
    refused = bench.wait(member.fetch())
    assert (acquisitions(refused), answers(refused)) == ({}, {})
    assert refused.response.throttle_time_ms > 1_000
    assert acquisitions(bench.wait(other.fetch(max_wait_ms=100))) == {}
    assert member.acknowledged({0: [(0, 99, ACCEPT)]}) == {0: 0}
    assert bench.share_partition().records.start_offset == 100


def test_refused_fetch_returns_the_results_of_its_acknowledgements(bench):
    member = bench.member()
    bench.produce()
    assert member.fetched() == {0: [acquired(0, 0)]}
    bench.produce(100)
    bench.limit(consumer_byte_rate=50)
    refused = bench.wait(member.fetch(acknowledges={0: [(0, 0, ACCEPT), (1, 1, ACCEPT)]}))
    assert refused.response.throttle_time_ms
    assert answers(refused)[0].acknowledge_error_code == ErrorCode.INVALID_REQUEST
    assert acquisitions(refused) == {}
