"""Claims about InitProducerId, partitions of transactions, and who is fenced."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.transaction.metadata import MAX_EPOCH
from broker_sim.transaction.state import TransactionState

S = TransactionState
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
NOBODY = (-1, -1)
TIMEOUT_MS = 60_000


def at_epoch(bench, epoch):
    """Return a producer whose transactional id has got to that epoch, with nothing open."""
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


def test_answer_waits_for_the_replicas(bench):
    bench.log.is_held = True
    told = bench.init()
    assert told == []
    assert bench.init() == (ErrorCode.CONCURRENT_TRANSACTIONS, *NOBODY)
    bench.log.end_wait()
    assert told == [(ErrorCode.NONE, 1_000, 0)]


@pytest.mark.parametrize(
    ("error", "told"),
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
def test_failed_write_is_told_as_kafka_does_and_changes_nothing(bench, error, told):
    bench.init()
    bench.log.fails_with = error
    assert bench.init() == (told, *NOBODY)
    bench.log.fails_with = None
    assert bench.init() == (ErrorCode.NONE, 1_000, 1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeout_outside_of_the_limits_is_refused(bench, timeout_ms):
    assert bench.init(timeout_ms=timeout_ms)[0] is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert bench.metadata() is None


@pytest.mark.parametrize("timeout_ms", [1, 900_000])
def test_timeout_at_the_limits_is_accepted(bench, timeout_ms):
    assert bench.init(timeout_ms=timeout_ms)[0] is ErrorCode.NONE


def test_largest_timeout_is_that_of_the_configuration(make_bench):
    bench = make_bench(transaction_max_timeout_ms=100)
    assert bench.init(timeout_ms=101)[0] is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert bench.init(timeout_ms=100)[0] is ErrorCode.NONE


def test_empty_id_is_refused(bench):
    assert bench.init("")[0] is ErrorCode.INVALID_REQUEST


def test_without_ids_of_producers_the_client_asks_again(bench):
    bench.next_ids = iter(())
    assert bench.init() == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, *NOBODY)
    bench.next_ids = iter([7])
    assert bench.init() == (ErrorCode.NONE, 7, 0)


def test_producer_that_says_who_it_is_goes_on(bench):
    producer = bench.producer()
    assert bench.init(expected=producer) == (ErrorCode.NONE, producer[0], 1)


def test_repeated_request_gets_the_same_epoch(bench):
    producer = bench.producer()
    assert bench.init(expected=producer)[2] == 1
    assert bench.init(expected=producer)[2] == 1
    assert bench.init(expected=(producer[0], 1))[2] == 2


def test_producer_that_was_fenced_is_told(bench):
    producer = bench.producer()
    bench.init()
    assert bench.init(expected=producer)[0] is ErrorCode.PRODUCER_FENCED
    assert bench.init(expected=(999, 1))[0] is ErrorCode.PRODUCER_FENCED


def test_unknown_id_accepts_whoever_it_is(bench):
    assert bench.init(expected=(999, 5)) == (ErrorCode.NONE, 1_000, 0)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_open_transaction_is_aborted_and_its_producer_fenced(make_bench, level):
    bench = make_bench(level)
    producer = bench.producer()
    bench.add(producer, version=level)
    assert bench.init() == (ErrorCode.CONCURRENT_TRANSACTIONS, *NOBODY)
    assert bench.state is S.PREPARE_ABORT
    assert bench.metadata().producer_epoch == 1
    # In version 2 Kafka looks for a running change first, in the others for the epoch.
    told = ErrorCode.CONCURRENT_TRANSACTIONS if level == 2 else ErrorCode.PRODUCER_FENCED
    assert bench.end(producer, version=level)[0] is told
    assert bench.init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.advance()
    (call,) = bench.calls
    assert call.markers == [(False, 1, [("t", 0)])]
    bench.answer_markers()
    assert bench.state is S.COMPLETE_ABORT
    assert bench.init() == (ErrorCode.NONE, producer[0], 2)


@pytest.mark.parametrize("level", [0, 2])
def test_epoch_that_was_not_written_is_not_raised_again(make_bench, level):
    # In version 2 the epoch is only taken with the record, so nothing has to be remembered.
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


def test_used_up_epochs_give_a_new_producer_id(bench):
    at_epoch(bench, MAX_EPOCH - 2)
    assert bench.init() == (ErrorCode.NONE, 1_000, MAX_EPOCH - 1)
    assert bench.init() == (ErrorCode.NONE, 1_001, 0)
    assert bench.metadata().values.last_producer_epoch == -1


def test_producer_that_used_its_epochs_up_may_repeat_its_request(bench):
    old = at_epoch(bench, MAX_EPOCH - 1)
    assert bench.init(expected=old) == (ErrorCode.NONE, 1_001, 0)
    assert bench.init(expected=old) == (ErrorCode.NONE, 1_001, 0)
    assert bench.init(expected=(old[0], 5))[0] is ErrorCode.PRODUCER_FENCED


def test_id_of_before_counts_only_with_its_last_epoch(bench):
    producer_id, _ = at_epoch(bench, MAX_EPOCH - 1)
    bench.init()
    assert bench.init(expected=(producer_id, 0))[0] is ErrorCode.PRODUCER_FENCED


def test_fencing_in_the_epoch_of_markers_does_not_go_beyond_it(make_bench):
    bench = make_bench(0)
    producer = at_epoch(bench, MAX_EPOCH)
    bench.add(producer, version=0)
    assert bench.init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.metadata().producer_epoch == MAX_EPOCH


def test_epochs_that_are_used_up_leave_no_answer_for_another_epoch(bench):
    producer_id, _ = at_epoch(bench, MAX_EPOCH - 1)
    answer = bench.init(expected=(producer_id, 5))
    assert answer[0] is ErrorCode.UNKNOWN_SERVER_ERROR


def test_no_id_for_used_up_epochs_changes_nothing(bench):
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


def test_partitions_that_are_there_are_not_written_again(bench):
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
def test_who_is_not_the_producer_adds_and_verifies_nothing(bench, transactional_id, producer, error):
    bench.producer()
    named = {"transactional_id": transactional_id}
    assert bench.add(producer, T0, **named) is error
    assert bench.verify(producer, T0, T1, **named) == {T0: error, T1: error}
    assert bench.end(producer, **named) == (error, *NOBODY)
    assert bench.state is S.EMPTY


def test_nothing_is_added_while_the_transaction_before_is_not_complete(bench):
    producer = bench.producer()
    bench.add(producer)
    producer = bench.end(producer)[1:]
    assert bench.add(producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.answer_markers()
    assert bench.add(producer) is ErrorCode.NONE


def test_nothing_is_added_while_something_is_written(bench):
    producer = bench.producer()
    bench.log.is_held = True
    told = bench.add(producer)
    assert bench.add(producer, T1) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.end(producer)[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.log.end_wait()
    assert told == [ErrorCode.NONE]


def test_verification_tells_which_partitions_are_in_the_transaction(bench):
    producer = bench.producer()
    assert bench.verify(producer, T0) == {T0: ErrorCode.TRANSACTION_ABORTABLE}
    bench.add(producer, T0)
    assert bench.verify(producer, T0, T1) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}


def test_nothing_is_verified_while_the_transaction_ends(bench):
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


def test_partition_that_is_being_loaded_is_not_ready(bench):
    bench.producer()
    bench.epoch += 1
    bench.publish()
    assert bench.init()[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.advance()
    assert bench.init() == (ErrorCode.NONE, 1_000, 1)


def test_write_that_ends_after_a_change_of_leader_is_not_taken_in(bench):
    bench.log.is_held = True
    told = bench.init()
    bench.epoch += 1
    bench.publish(leader=2)
    bench.log.end_wait()
    assert told == [(ErrorCode.NOT_COORDINATOR, *NOBODY)]


def test_write_of_an_epoch_before_is_not_taken_in(bench):
    producer = bench.producer()
    bench.log.is_held = True
    told = bench.add(producer)
    bench.log.batches[0].pop()
    bench.reelect()
    bench.log.end_wait()
    assert told == [ErrorCode.NOT_COORDINATOR]
    assert bench.state is S.EMPTY


def test_next_coordinator_goes_on_with_what_was_written(bench):
    producer = bench.producer()
    bench.add(producer, T0, U0)
    bench.coordinator = bench.new_coordinator()
    bench.image = type(bench.image)(0, "c", features=bench.image.features)
    bench.reelect()
    assert bench.state is S.ONGOING
    assert list(bench.metadata().partitions) == [T0, U0]
    assert bench.add(producer, T1) is ErrorCode.NONE


def test_dead_broker_forgets_everything(bench):
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
def test_transaction_is_aborted_after_its_timeout_and_not_before(make_bench, level):
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
    # In version 2 the commit looks as if it were repeated after the abort.
    told = ErrorCode.INVALID_TXN_STATE if level == 2 else ErrorCode.PRODUCER_FENCED
    assert bench.end(producer, version=level)[0] is told
    assert bench.add(producer, version=level) is ErrorCode.PRODUCER_FENCED
    assert bench.init()[0] is ErrorCode.NONE


def test_transaction_that_is_changing_is_not_aborted(bench):
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
