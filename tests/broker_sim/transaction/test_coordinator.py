"""Tests of InitProducerId, adding partitions to transactions, and fencing."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.transaction.metadata import MAX_EPOCH, NO_TIMEOUT_MS
from broker_sim.transaction.state import TransactionState

S = TransactionState
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
NO_PRODUCER = (-1, -1)
TIMEOUT_MS = 60_000


def at_epoch(bench, epoch):
    """Return a producer at that epoch, without an ongoing transaction."""
    producer_id, _ = bench.producer()
    metadata = bench.metadata()
    metadata.fence(epoch)
    return producer_id, epoch


# -- InitProducerId -----------------------------------------------------------------------------------


def test_each_producer_of_an_id_gets_the_next_epoch(bench):
    assert bench.init() == (ErrorCode.NONE, 1_000, 0)
    assert bench.init() == (ErrorCode.NONE, 1_000, 1)
    assert bench.init("other") == (ErrorCode.NONE, 1_001, 0)
    assert bench.log.states() == [S.EMPTY, S.EMPTY, S.EMPTY]
    assert bench.log.timeouts_ms == [TIMEOUT_MS] * 3


def test_answer_waits_for_the_commit(bench):
    bench.log.is_held = True
    answers = bench.init()
    assert answers == []
    assert bench.init() == (ErrorCode.CONCURRENT_TRANSACTIONS, *NO_PRODUCER)
    bench.log.end_wait()
    assert answers == [(ErrorCode.NONE, 1_000, 0)]


@pytest.mark.parametrize(
    ("append_error", "error"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_append_error_is_mapped_as_in_kafka_and_changes_nothing(bench, append_error, error):
    bench.init()
    bench.log.fails_with = append_error
    assert bench.init() == (error, *NO_PRODUCER)
    bench.log.fails_with = None
    assert bench.init() == (ErrorCode.NONE, 1_000, 1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeout_outside_the_limits_is_rejected(bench, timeout_ms):
    assert bench.init(timeout_ms=timeout_ms)[0] is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert bench.metadata() is None


@pytest.mark.parametrize("timeout_ms", [1, 900_000])
def test_timeout_at_the_limits_is_accepted(bench, timeout_ms):
    assert bench.init(timeout_ms=timeout_ms)[0] is ErrorCode.NONE


def test_two_phase_commit_is_refused_where_it_is_not_enabled(bench):
    assert bench.init(enable_2pc=True)[0] is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_prepared_transaction_cannot_be_kept(make_bench):
    bench = make_bench(transaction_two_phase_commit_enable=True)
    assert bench.init(keep_prepared_txn=True)[0] is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("timeout_ms", [0, TIMEOUT_MS, 900_001])
def test_transaction_with_two_phase_commit_never_times_out(make_bench, timeout_ms):
    bench = make_bench(transaction_two_phase_commit_enable=True)
    producer = bench.init(timeout_ms=timeout_ms, enable_2pc=True)[1:]
    bench.add(producer)
    bench.advance(NO_TIMEOUT_MS + 1)
    bench.coordinator.abort_timed_out_transactions()
    assert bench.state is S.ONGOING
    bench.init()
    assert bench.state is S.PREPARE_ABORT, "the next producer fences"


def test_maximum_timeout_is_configurable(make_bench):
    bench = make_bench(transaction_max_timeout_ms=100)
    assert bench.init(timeout_ms=101)[0] is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert bench.init(timeout_ms=100)[0] is ErrorCode.NONE


def test_empty_transactional_id_is_rejected(bench):
    assert bench.init("")[0] is ErrorCode.INVALID_REQUEST


def test_error_is_retriable_while_no_producer_ids_are_available(bench):
    bench.next_ids = iter(())
    assert bench.init() == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, *NO_PRODUCER)
    bench.next_ids = iter([7])
    assert bench.init() == (ErrorCode.NONE, 7, 0)


def test_producer_with_current_epoch_gets_the_next_one(bench):
    producer = bench.producer()
    assert bench.init(expected=producer) == (ErrorCode.NONE, producer[0], 1)


def test_repeated_request_gets_the_same_epoch(bench):
    producer = bench.producer()
    assert bench.init(expected=producer)[2] == 1
    assert bench.init(expected=producer)[2] == 1
    assert bench.init(expected=(producer[0], 1))[2] == 2


def test_fenced_producer_gets_producer_fenced(bench):
    producer = bench.producer()
    bench.init()
    assert bench.init(expected=producer)[0] is ErrorCode.PRODUCER_FENCED
    assert bench.init(expected=(999, 1))[0] is ErrorCode.PRODUCER_FENCED


def test_unknown_transactional_id_accepts_any_producer(bench):
    assert bench.init(expected=(999, 5)) == (ErrorCode.NONE, 1_000, 0)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_open_transaction_is_aborted_and_its_producer_fenced(make_bench, level):
    bench = make_bench(level)
    producer = bench.producer()
    bench.add(producer, version=level)
    assert bench.init() == (ErrorCode.CONCURRENT_TRANSACTIONS, *NO_PRODUCER)
    assert bench.state is S.PREPARE_ABORT
    assert bench.metadata().producer_epoch == 1
    # Version 2 checks for a pending change before the epoch, older ones after it.
    answers = ErrorCode.CONCURRENT_TRANSACTIONS if level == 2 else ErrorCode.PRODUCER_FENCED
    assert bench.end(producer, version=level)[0] is answers
    assert bench.init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.advance()
    (call,) = bench.calls
    assert call.markers == [(False, 1, [("t", 0)])]
    bench.answer_markers()
    assert bench.state is S.COMPLETE_ABORT
    assert bench.init() == (ErrorCode.NONE, producer[0], 2)


@pytest.mark.parametrize("level", [0, 2])
def test_failed_fencing_write_raises_the_epoch_once(make_bench, level):
    # In version 2 the epoch changes only with the record, so there is nothing to undo.
    bench = make_bench(level)
    producer = bench.producer()
    bench.add(producer, version=level)
    bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.init()[0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.init()[0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.metadata().producer_epoch == (1 if level == 0 else 0)
    bench.log.fails_with = None
    assert bench.init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.answer_markers()
    assert bench.init() == (ErrorCode.NONE, producer[0], 2)


def test_exhausted_epochs_give_a_new_producer_id(bench):
    at_epoch(bench, MAX_EPOCH - 2)
    assert bench.init() == (ErrorCode.NONE, 1_000, MAX_EPOCH - 1)
    assert bench.init() == (ErrorCode.NONE, 1_001, 0)
    assert bench.metadata().values.last_producer_epoch == -1


def test_producer_with_exhausted_epochs_may_retry(bench):
    old = at_epoch(bench, MAX_EPOCH - 1)
    assert bench.init(expected=old) == (ErrorCode.NONE, 1_001, 0)
    assert bench.init(expected=old) == (ErrorCode.NONE, 1_001, 0)
    assert bench.init(expected=(old[0], 5))[0] is ErrorCode.PRODUCER_FENCED


def test_previous_producer_id_is_valid_only_with_its_last_epoch(bench):
    producer_id, _ = at_epoch(bench, MAX_EPOCH - 1)
    bench.init()
    assert bench.init(expected=(producer_id, 0))[0] is ErrorCode.PRODUCER_FENCED


def test_fencing_never_exceeds_the_last_epoch(make_bench):
    bench = make_bench(0)
    producer = at_epoch(bench, MAX_EPOCH)
    bench.add(producer, version=0)
    assert bench.init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.metadata().producer_epoch == MAX_EPOCH


def test_exhausted_epochs_reject_any_other_epoch(bench):
    producer_id, _ = at_epoch(bench, MAX_EPOCH - 1)
    answer = bench.init(expected=(producer_id, 5))
    assert answer[0] is ErrorCode.UNKNOWN_SERVER_ERROR


def test_rotation_without_producer_ids_changes_nothing(bench):
    at_epoch(bench, MAX_EPOCH - 1)
    bench.next_ids = iter(())
    assert bench.init()[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.next_ids = iter([7])
    assert bench.init() == (ErrorCode.NONE, 7, 0)


# -- partitions ---------------------------------------------------------------------------------------


def test_first_partition_begins_the_transaction(bench):
    producer = bench.producer()
    bench.advance(10)
    now_ms = bench.timers.clock.wall_clock_ms()
    assert bench.add(producer, T0) is ErrorCode.NONE
    bench.advance(10)
    assert bench.add(producer, T1, U0) is ErrorCode.NONE
    values = bench.metadata().values
    assert values.state is S.ONGOING
    assert list(values.partitions) == [T0, T1, U0]
    assert (values.start_ms, values.last_update_ms) == (now_ms, now_ms + 10)


def test_partitions_already_added_are_not_written_again(bench):
    producer = bench.producer()
    bench.add(producer, T0, T1)
    written = len(bench.log.states())
    assert bench.add(producer, T1) is ErrorCode.NONE
    assert bench.add(producer, T0, U0) is ErrorCode.NONE
    assert len(bench.log.states()) == written + 1


@pytest.mark.parametrize(
    ("transactional_id", "producer", "error"),
    [
        ("", (1_000, 0), ErrorCode.INVALID_REQUEST),
        ("nobody", (1_000, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ("txn", (999, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ("txn", (1_000, 1), ErrorCode.PRODUCER_FENCED),
        ("txn", (1_000, -1), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_invalid_producer_cannot_add_verify_or_end(bench, transactional_id, producer, error):
    bench.producer()
    named = {"transactional_id": transactional_id}
    assert bench.add(producer, T0, **named) is error
    assert bench.verify(producer, T0, T1, **named) == {T0: error, T1: error}
    assert bench.end(producer, **named) == (error, *NO_PRODUCER)
    assert bench.state is S.EMPTY


def test_partitions_cannot_be_added_while_previous_transaction_completes(bench):
    producer = bench.producer()
    bench.add(producer)
    producer = bench.end(producer)[1:]
    assert bench.add(producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.answer_markers()
    assert bench.add(producer) is ErrorCode.NONE


def test_partitions_cannot_be_added_while_a_change_is_pending(bench):
    producer = bench.producer()
    bench.log.is_held = True
    answers = bench.add(producer)
    assert bench.add(producer, T1) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.end(producer)[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.log.end_wait()
    assert answers == [ErrorCode.NONE]


def test_verification_reports_partitions_outside_the_transaction(bench):
    producer = bench.producer()
    assert bench.verify(producer, T0) == {T0: ErrorCode.TRANSACTION_ABORTABLE}
    bench.add(producer, T0)
    assert bench.verify(producer, T0, T1) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}


def test_verification_fails_while_the_transaction_ends(bench):
    producer = bench.producer()
    bench.add(producer, T0, version=0)
    bench.end(producer, version=0)
    assert bench.verify(producer, T0) == {T0: ErrorCode.CONCURRENT_TRANSACTIONS}


# -- roles --------------------------------------------------------------------------------------------


def test_other_brokers_are_not_the_coordinator(bench):
    producer = bench.producer()
    bench.epoch += 1
    bench.publish(leader=2)
    assert bench.init()[0] is ErrorCode.NOT_COORDINATOR
    assert bench.add(producer) is ErrorCode.NOT_COORDINATOR
    assert bench.end(producer)[0] is ErrorCode.NOT_COORDINATOR
    assert bench.verify(producer, T0) == {T0: ErrorCode.NOT_COORDINATOR}


def test_loading_partition_returns_load_in_progress(bench):
    bench.producer()
    bench.epoch += 1
    bench.publish()
    assert bench.init()[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.advance()
    assert bench.init() == (ErrorCode.NONE, 1_000, 1)


def test_write_committed_after_resignation_is_not_applied(bench):
    bench.log.is_held = True
    answers = bench.init()
    bench.epoch += 1
    bench.publish(leader=2)
    bench.log.end_wait()
    assert answers == [(ErrorCode.NOT_COORDINATOR, *NO_PRODUCER)]


def test_write_of_an_earlier_epoch_is_not_applied(bench):
    producer = bench.producer()
    bench.log.is_held = True
    answers = bench.add(producer)
    bench.log.batches[0].pop()
    bench.reelect()
    bench.log.end_wait()
    assert answers == [ErrorCode.NOT_COORDINATOR]
    assert bench.state is S.EMPTY


def test_next_coordinator_continues_the_transaction(bench):
    producer = bench.producer()
    bench.add(producer, T0, U0)
    bench.coordinator = bench.new_coordinator()
    bench.image = type(bench.image)(0, "c", features=bench.image.features)
    bench.reelect()
    assert bench.state is S.ONGOING
    assert list(bench.metadata().partitions) == [T0, U0]
    assert bench.add(producer, T1) is ErrorCode.NONE


def test_shutdown_drops_all_state(bench):
    bench.producer()
    bench.coordinator.shutdown()
    with pytest.raises(ApiError) as refused:
        bench.metadata()
    assert refused.value.error_code is ErrorCode.NOT_COORDINATOR


def test_ids_are_spread_over_the_partitions(make_bench):
    bench = make_bench(partitions=5)
    for number in range(20):
        bench.init(f"txn-{number}")
    assert len(bench.log.batches) == 5


# -- timeouts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 2])
def test_transaction_is_aborted_just_after_its_timeout(make_bench, level):
    bench = make_bench(level)
    producer = bench.producer()
    bench.add(producer, version=level)
    bench.advance(TIMEOUT_MS)
    bench.coordinator.abort_timed_out_transactions()
    assert bench.state is S.ONGOING
    bench.advance(1)
    bench.coordinator.abort_timed_out_transactions()
    assert bench.state is S.PREPARE_ABORT
    bench.answer_markers()
    assert bench.state is S.COMPLETE_ABORT
    # In version 2 the commit looks like a retry after the abort.
    answers = ErrorCode.INVALID_TXN_STATE if level == 2 else ErrorCode.PRODUCER_FENCED
    assert bench.end(producer, version=level)[0] is answers
    assert bench.add(producer, version=level) is ErrorCode.PRODUCER_FENCED
    assert bench.init()[0] is ErrorCode.NONE


def test_transaction_with_pending_change_is_not_aborted(bench):
    producer = bench.producer()
    bench.add(producer)
    bench.log.is_held = True
    bench.add(producer, T1)
    bench.advance(TIMEOUT_MS + 1)
    bench.coordinator.abort_timed_out_transactions()
    bench.log.end_wait()
    assert bench.state is S.ONGOING
    bench.coordinator.abort_timed_out_transactions()
    assert bench.state is S.PREPARE_ABORT


def test_ids_without_a_transaction_do_not_time_out(bench):
    bench.producer()
    bench.advance(10 * TIMEOUT_MS)
    bench.coordinator.abort_timed_out_transactions()
    assert bench.state is S.EMPTY
