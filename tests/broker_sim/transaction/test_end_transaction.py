"""Tests of commit and abort in each state, in both protocols, once and retried."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.transaction.metadata import MAX_EPOCH
from broker_sim.transaction.state import TransactionState

S = TransactionState
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
NO_PRODUCER = (-1, -1)
OLD, NEW = 0, 2
"""Transaction versions of clients: without and with an epoch bump per transaction."""


@pytest.mark.parametrize("commit", [True, False])
def test_old_client_keeps_its_epoch(bench, commit):
    producer = bench.producer()
    bench.add(producer, version=OLD)
    assert bench.end(producer, commit, OLD) == (ErrorCode.NONE, *NO_PRODUCER)
    assert bench.state is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT)
    bench.answer_markers()
    assert bench.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    assert bench.metadata().producer_epoch == 0
    assert bench.add(producer, version=OLD) is ErrorCode.NONE


@pytest.mark.parametrize("commit", [True, False])
def test_new_client_gets_the_next_epoch(bench, commit):
    producer = bench.producer()
    bench.add(producer)
    assert bench.end(producer, commit) == (ErrorCode.NONE, producer[0], 1)
    bench.advance()
    (call,) = bench.calls
    assert call.markers == [(commit, 1, [("t", 0)])]
    bench.answer_markers()
    assert bench.add(producer) is ErrorCode.PRODUCER_FENCED
    assert bench.add((producer[0], 1)) is ErrorCode.NONE


def test_answer_waits_for_prepare_but_not_for_markers(bench):
    producer = bench.producer()
    bench.add(producer)
    bench.log.is_held = True
    answers = bench.end(producer)
    bench.advance()
    assert answers == []
    assert bench.calls == []
    bench.log.end_wait()
    assert answers == [(ErrorCode.NONE, producer[0], 1)]
    bench.advance()
    assert len(bench.calls) == 1


def state_of(bench, state, version):
    """Bring the transactional id into that state; return the producer id and epoch before its end."""
    producer = bench.producer()
    if state is S.EMPTY:
        return producer
    bench.add(producer, version=version)
    if state is not S.ONGOING:
        bench.end(producer, state in {S.PREPARE_COMMIT, S.COMPLETE_COMMIT}, version)
    if state in {S.COMPLETE_COMMIT, S.COMPLETE_ABORT}:
        bench.answer_markers()
    assert bench.state is state
    return producer


@pytest.mark.parametrize(
    ("state", "commit", "error"),
    [
        (S.EMPTY, True, ErrorCode.INVALID_TXN_STATE),
        (S.EMPTY, False, ErrorCode.INVALID_TXN_STATE),
        (S.ONGOING, True, ErrorCode.NONE),
        (S.ONGOING, False, ErrorCode.NONE),
        (S.PREPARE_COMMIT, True, ErrorCode.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_COMMIT, False, ErrorCode.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, True, ErrorCode.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, False, ErrorCode.CONCURRENT_TRANSACTIONS),
        (S.COMPLETE_COMMIT, True, ErrorCode.NONE),
        (S.COMPLETE_COMMIT, False, ErrorCode.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, True, ErrorCode.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, False, ErrorCode.NONE),
    ],
)
@pytest.mark.parametrize("version", [OLD, NEW])
def test_retried_end_is_answered_by_state(bench, state, commit, error, version):
    producer = state_of(bench, state, version)
    if (state, commit, version) == (S.EMPTY, False, NEW):
        error = ErrorCode.NONE
    written = len(bench.log.states())
    answers = bench.end(producer, commit, version)
    assert answers[0] is error
    if state in {S.COMPLETE_COMMIT, S.COMPLETE_ABORT} and not error:
        assert answers[1:] == ((producer[0], 1) if version == NEW else NO_PRODUCER)
        assert len(bench.log.states()) == written


@pytest.mark.parametrize("result", [True, False])
def test_prepared_transaction_rejects_the_opposite_end(bench, result):
    # Between the write of the decision and the sending of markers no change is pending.
    producer = state_of(bench, S.PREPARE_COMMIT if result else S.PREPARE_ABORT, OLD)
    bench.metadata().pending_state = None
    assert bench.end(producer, result, OLD)[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.end(producer, not result, OLD)[0] is ErrorCode.INVALID_TXN_STATE
    assert bench.end(producer, result, NEW)[0] is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_new_client_may_abort_an_empty_transaction(bench, state):
    producer_id, _ = state_of(bench, state, NEW)
    epoch = bench.metadata().producer_epoch
    bench.advance(5)
    assert bench.end((producer_id, epoch), commit=False) == (ErrorCode.NONE, producer_id, epoch + 1)
    assert bench.metadata().values.start_ms == bench.timers.clock.wall_clock_ms()
    bench.advance()
    assert bench.calls == []
    assert bench.state is S.COMPLETE_ABORT


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_new_client_cannot_commit_an_empty_transaction(bench, state):
    producer_id, _ = state_of(bench, state, NEW)
    epoch = bench.metadata().producer_epoch
    assert bench.end((producer_id, epoch))[0] is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("epoch", [1, 5, -1])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_other_epochs_are_fenced(bench, epoch, version):
    producer_id, _ = state_of(bench, S.ONGOING, version)
    assert bench.end((producer_id, epoch), version=version)[0] is ErrorCode.PRODUCER_FENCED


def test_retry_two_epochs_late_is_fenced(bench):
    producer = state_of(bench, S.COMPLETE_COMMIT, NEW)
    bench.end((producer[0], 1), commit=False)
    bench.answer_markers()
    assert bench.end(producer)[0] is ErrorCode.PRODUCER_FENCED


def exhausted(bench):
    """Return a producer in the last epoch of its id, with an ongoing transaction."""
    producer_id, _ = bench.producer()
    bench.metadata().fence(MAX_EPOCH - 1)
    bench.add((producer_id, MAX_EPOCH - 1))
    return producer_id, MAX_EPOCH - 1


def test_markers_use_the_last_epoch_and_producer_gets_new_id(bench):
    old = exhausted(bench)
    assert bench.end(old) == (ErrorCode.NONE, 1_001, 0)
    assert (bench.metadata().producer_id, bench.metadata().producer_epoch) == (1_000, MAX_EPOCH)
    bench.advance()
    (call,) = bench.calls
    assert call.markers == [(True, MAX_EPOCH, [("t", 0)])]
    bench.answer_markers()
    assert (bench.metadata().producer_id, bench.metadata().producer_epoch) == (1_001, 0)
    assert bench.add((1_001, 0)) is ErrorCode.NONE


def test_retry_in_the_last_epoch_gets_the_new_producer_id(bench):
    old = exhausted(bench)
    bench.end(old)
    bench.answer_markers()
    assert bench.end(old) == (ErrorCode.NONE, 1_001, 0)
    assert bench.end(old, commit=False)[0] is ErrorCode.INVALID_TXN_STATE


def test_missing_producer_id_leaves_the_transaction_open(bench):
    old = exhausted(bench)
    bench.next_ids = iter(())
    assert bench.end(old)[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert bench.state is S.ONGOING
    bench.next_ids = iter([7])
    assert bench.end(old) == (ErrorCode.NONE, 7, 0)


def test_abort_in_the_last_epoch_recovers(bench):
    producer_id, _ = bench.producer()
    bench.metadata().fence(MAX_EPOCH)
    bench.add((producer_id, MAX_EPOCH))
    assert bench.end((producer_id, MAX_EPOCH), commit=False) == (ErrorCode.NONE, 1_001, 0)
    bench.answer_markers()
    assert bench.add((1_001, 0)) is ErrorCode.NONE


def test_failed_write_leaves_the_transaction_open(bench):
    producer = state_of(bench, S.ONGOING, NEW)
    bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.end(producer) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, *NO_PRODUCER)
    bench.log.fails_with = None
    assert bench.state is S.ONGOING
    assert bench.end(producer)[0] is ErrorCode.NONE
