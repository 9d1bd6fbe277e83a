"""Tests of markers: their leaders, their retries, and the completion of transactions."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.transaction.marker_channel import RETRY_BACKOFF_MS
from broker_sim.transaction.state import TransactionState

S = TransactionState
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def committing(bench, *partitions, **options):
    producer = bench.producer(**options)
    bench.add(producer, *(partitions or (T0, T1, U0)), **options)
    assert bench.end(producer, **options)[0] is ErrorCode.NONE
    bench.advance()


def sent(bench):
    """Return the calls by broker, and clear the list."""
    calls, bench.calls[:] = {call.broker_id: call for call in bench.calls}, []
    return calls


def test_each_leader_gets_the_marker_of_its_partitions(bench):
    committing(bench)
    calls = sent(bench)
    assert calls[1].markers == [(True, 1, [("t", 0)])]
    assert calls[2].markers == [(True, 1, [("t", 1), ("u", 0)])]
    assert {call.request.markers[0].coordinator_epoch for call in calls.values()} == {5}
    assert {call.request.markers[0].transaction_version for call in calls.values()} == {2}
    calls[1].answer()
    bench.advance()
    assert bench.state is S.PREPARE_COMMIT
    calls[2].answer()
    bench.advance()
    assert bench.state is S.COMPLETE_COMMIT
    assert bench.log.states()[-2:] == [S.PREPARE_COMMIT, S.COMPLETE_COMMIT]


def test_markers_of_one_iteration_share_a_request(bench):
    for name in ("a", "b"):
        producer = bench.producer(transactional_id=name)
        bench.add(producer, T0, transactional_id=name)
        bench.end(producer, transactional_id=name)
    bench.advance()
    (call,) = bench.calls
    assert len(call.markers) == 2


def test_synchronous_answers_are_handled(bench):
    bench.at_once = {1, 2}
    committing(bench, T0, T1)
    assert [call.markers for call in bench.calls] == [[(True, 1, [("t", 0)])], [(True, 1, [("t", 1)])]]
    assert bench.state is S.COMPLETE_COMMIT


def test_broker_gets_one_request_at_a_time(bench):
    committing(bench, T0)
    committing(bench, T0, transactional_id="b")
    committing(bench, T0, transactional_id="c")
    (first,) = bench.calls
    bench.calls.clear()
    first.answer()
    bench.advance()
    (second,) = bench.calls
    assert len(second.markers) == 2


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_failed_partition_is_resent_after_backoff(bench, error):
    committing(bench, T1, U0)
    sent(bench)[2].answer(t=error)
    bench.advance(RETRY_BACKOFF_MS - 1)
    assert bench.calls == []
    bench.advance(1)
    assert sent(bench)[2].markers == [(True, 1, [("t", 1)])]


def test_marker_follows_its_partition_to_the_next_leader(bench):
    committing(bench, T1)
    bench.leaders[T1] = 3
    bench.publish()
    sent(bench)[2].answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    bench.advance(RETRY_BACKOFF_MS)
    call = sent(bench)[3]
    call.answer()
    bench.advance()
    assert bench.state is S.COMPLETE_COMMIT


def test_marker_is_resent_after_disconnect(bench):
    committing(bench, T0)
    sent(bench)[1].lose()
    bench.advance(RETRY_BACKOFF_MS)
    sent(bench)[1].answer()
    bench.advance()
    assert bench.state is S.COMPLETE_COMMIT


def test_marker_is_resent_after_request_timeout(make_bench):
    bench = make_bench(request_timeout_ms=1_000)
    committing(bench, T0)
    frozen = sent(bench)[1]
    bench.leaders[T0] = 2
    bench.publish()
    bench.advance(999)
    assert bench.calls == []
    bench.advance(1 + RETRY_BACKOFF_MS)
    second = sent(bench)[2]
    frozen.answer()
    bench.advance()
    assert bench.state is S.PREPARE_COMMIT
    second.answer()
    bench.advance()
    assert bench.state is S.COMPLETE_COMMIT


def test_answered_request_does_not_time_out(make_bench):
    bench = make_bench(request_timeout_ms=1_000)
    committing(bench, T0, T1)
    calls = sent(bench)
    calls[1].answer()
    bench.advance(500)
    calls[2].answer()
    bench.advance(10_000)
    assert bench.calls == []


def test_marker_without_a_leader_waits_for_one(bench):
    producer = bench.producer()
    bench.add(producer, T0)
    bench.dead = {1}
    bench.publish()
    bench.end(producer)
    bench.advance(60_000)
    assert bench.calls == []
    markers = bench.coordinator.markers
    assert markers.unknown_destination_queue_size == 1
    bench.dead = set()
    bench.publish()
    bench.advance()
    assert markers.unknown_destination_queue_size == 0
    sent(bench)[1].answer()
    bench.advance()
    assert bench.state is S.COMPLETE_COMMIT


def test_deleted_topics_need_no_marker(bench):
    producer = bench.producer()
    bench.add(producer, T0, U0)
    del bench.leaders[U0]
    bench.publish()
    bench.end(producer)
    bench.advance()
    calls = sent(bench)
    assert list(calls) == [1]
    calls[1].answer()
    bench.advance()
    assert bench.state is S.COMPLETE_COMMIT


def test_topic_deleted_before_resend_completes_the_transaction(bench):
    committing(bench, U0)
    del bench.leaders[U0]
    bench.publish()
    sent(bench)[2].answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    bench.advance(RETRY_BACKOFF_MS)
    assert bench.state is S.COMPLETE_COMMIT


@pytest.mark.parametrize("error", [ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION])
def test_leader_without_marker_support_counts_as_done(bench, error):
    committing(bench, T0)
    sent(bench)[1].answer(error)
    bench.advance()
    assert bench.state is S.COMPLETE_COMMIT


@pytest.mark.parametrize("error", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_fenced_coordinator_gives_up(bench, error):
    committing(bench, T0, T1)
    calls = sent(bench)
    calls[1].answer(error)
    bench.advance(60_000)
    calls[2].answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    bench.advance(60_000)
    assert bench.calls == []
    assert bench.state is S.PREPARE_COMMIT


def test_written_markers_count_if_another_partition_is_fenced(bench):
    committing(bench, T1, U0)  # both have the same leader
    (call,) = bench.calls
    call.answer(t=ErrorCode.INVALID_PRODUCER_EPOCH)
    bench.advance()
    assert list(bench.metadata().partitions) == [T1]


def test_markers_written_after_fencing_error_count(bench):
    committing(bench, T0, T1)
    calls = sent(bench)
    calls[2].answer(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    bench.advance()
    calls[1].answer()
    bench.advance(60_000)
    assert list(bench.metadata().partitions) == [T1]
    assert (bench.calls, bench.state) == ([], S.PREPARE_COMMIT)


def test_completion_record_is_retried_until_replicated(bench):
    committing(bench, T0)
    bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    sent(bench)[1].answer()
    bench.advance(10 * RETRY_BACKOFF_MS)
    assert bench.state is S.PREPARE_COMMIT
    assert bench.coordinator.markers.log_append_retry_queue_size == 1
    assert bench.init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.log.fails_with = None
    bench.advance(RETRY_BACKOFF_MS)
    assert bench.state is S.COMPLETE_COMMIT
    assert bench.coordinator.markers.log_append_retry_queue_size == 0


def test_failed_completion_records_are_retried_together(bench):
    for transactional_id in ("one", "two", "three"):
        ours = {"transactional_id": transactional_id}
        producer = bench.producer(**ours)
        bench.add(producer, T0, **ours)
        bench.end(producer, **ours)
    bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.answer_markers()
    bench.advance(10 * RETRY_BACKOFF_MS)
    assert bench.coordinator.markers.log_append_retry_queue_size == 3
    assert bench.log.failed_appends == 3 * 11


@pytest.mark.parametrize("commit", [True, False])
def test_next_coordinator_resends_markers(bench, commit):
    producer = bench.producer()
    bench.add(producer, T0, T1)
    bench.end(producer, commit)
    bench.advance()
    old = sent(bench)
    bench.reelect()
    # Requests in flight must be answered first: a broker gets one at a time.
    for call in old.values():
        call.answer(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    bench.advance()
    calls = sent(bench)
    assert {broker: call.markers for broker, call in calls.items()} == {
        1: [(commit, 1, [("t", 0)])],
        2: [(commit, 1, [("t", 1)])],
    }
    assert {call.request.markers[0].coordinator_epoch for call in calls.values()} == {6}
    for call in calls.values():
        call.answer()
    bench.advance()
    assert bench.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)


def test_old_coordinator_does_not_resend(bench):
    committing(bench, T0)
    bench.epoch += 1
    bench.publish(leader=2)
    sent(bench)[1].lose()
    bench.advance(60_000)
    assert bench.calls == []


def test_late_answer_to_old_coordinator_is_ignored(bench):
    committing(bench, T0)
    old = sent(bench)[1]
    bench.reelect()
    old.answer()
    bench.advance()
    assert bench.state is S.PREPARE_COMMIT
    sent(bench)[1].answer()
    bench.advance()
    assert bench.state is S.COMPLETE_COMMIT


def test_deleted_state_topic_stops_the_markers(bench):
    committing(bench, T0)
    state = bench.image.topics[TRANSACTION_STATE_TOPIC]
    bench.coordinator.states.runtime.resigned(0)
    sent(bench)[1].answer()
    bench.advance()
    assert bench.calls == []
    assert bench.log.states()[-1] is S.PREPARE_COMMIT
    assert state.partitions
