"""The claims of Kafka's `VerificationGuardTest` and `UnifiedLogTest` on verification, through the log."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.log.producer_state_entry import VerificationStateEntry
from broker_sim.protocol.records import build_end_txn_marker

UNVERIFIED = ErrorCode.INVALID_TXN_STATE
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.fixture
def log(new_log):
    return new_log(verification=True)


@pytest.fixture
def ask(log, clock):
    """Start the verification of producer 7 and return its guard."""

    def call(sequence=0, epoch=0, *, supports_epoch_bump=False):
        return log.producer_state.maybe_start_verification(
            7, sequence, epoch, clock.wall_clock_ms(), supports_epoch_bump=supports_epoch_bump
        )

    return call


@pytest.fixture
def append(log, producer_batch):
    """Append a batch of producer 7's transaction."""

    def call(sequence=0, guard=None, **header):
        batch = producer_batch(sequence, **{"is_transactional": True, **header})
        return log.append_as_leader(batch, 0, verification_guard=guard)

    return call


@pytest.fixture
def end(log, clock):
    """Append a marker of producer 7."""

    def call(*, is_commit=True, epoch=0, transaction_version=0):
        marker = build_end_txn_marker(
            producer_id=7, producer_epoch=epoch, is_commit=is_commit, timestamp=clock.wall_clock_ms()
        )
        log.append_as_leader(marker, 0, origin="coordinator", transaction_version=transaction_version)

    return call


def test_first_batch_of_a_transaction_needs_a_guard_and_later_ones_none(append, ask, error_of):
    assert error_of(append) is UNVERIFIED
    guard = ask()
    assert error_of(append) is UNVERIFIED
    assert append(0, guard).first_offset == 0
    assert ask(1) is None, "the log knows that the transaction is ongoing"
    assert append(1).first_offset == 1


def test_coordinator_needs_a_guard_too(log, producer_batch, ask, error_of):
    batch = producer_batch(0, is_transactional=True)
    assert error_of(log.append_as_leader, batch, 0, origin="coordinator") is UNVERIFIED
    log.append_as_leader(batch, 0, origin="coordinator", verification_guard=ask())
    assert log.log_end_offset == 1


def test_follower_needs_no_guard(log, new_log, append, ask):
    append(0, ask())
    follower = new_log(verification=True)
    follower.append_as_follower(log.read(0, 1_000).records)
    assert follower.producer_state.active_producers[7].current_txn_first_offset == 0


def test_questions_about_one_producer_share_a_guard(ask):
    assert ask() is ask(1)


def test_guard_ends_with_the_append_that_it_allowed(append, ask, end, error_of):
    guard = ask()
    append(0, guard)
    end()
    assert error_of(append, 1, guard) is UNVERIFIED
    assert append(1, ask(1)).first_offset == 2


def test_marker_during_a_verification_invalidates_its_guard(append, ask, end, error_of):
    stale = ask()
    end(is_commit=False)
    assert error_of(append, 0, stale) is UNVERIFIED
    assert ask() is not stale


def test_guard_of_a_failed_append_holds_for_the_next_try(append, ask, error_of):
    guard = ask(3)
    assert error_of(append, 4, guard) is OUT_OF_ORDER
    assert append(3, guard).first_offset == 0


def test_retry_of_a_batch_is_answered_without_a_guard(append, ask, end, log):
    append(0, ask())
    end()
    info = append(0)
    assert (info.first_offset, log.log_end_offset) == (0, 2)


def test_older_epoch_is_refused_before_the_verification_and_at_the_append(append, ask, end, error_of):
    end(epoch=5)
    assert error_of(ask, epoch=4) is FENCED
    assert error_of(append, epoch=4) is FENCED
    assert ask(epoch=5) is not None


def test_transaction_of_an_older_epoch_does_not_verify_a_newer_one(append, ask):
    append(0, ask())
    assert ask(epoch=1) is not None
    assert ask(1, epoch=0) is None


def test_higher_sequence_waits_for_the_lowest_that_was_tried(append, ask, error_of):
    ask(2)
    guard = ask(5)
    assert error_of(append, 5, guard) is OUT_OF_ORDER
    assert error_of(append, 2, ask(1)) is OUT_OF_ORDER
    assert append(1, guard).first_offset == 0


def test_open_question_holds_back_batches_outside_of_transactions_too(log, append, ask, end, producer_batch, error_of):
    append(0, ask())
    end()
    ask(1, epoch=1)
    plain = producer_batch(2)
    assert error_of(log.append_as_leader, plain, 0) is OUT_OF_ORDER


@pytest.mark.parametrize(("supports_epoch_bump", "is_valid"), [(False, True), (True, False)])
def test_unknown_producer_of_version_2_begins_with_sequence_zero(append, ask, error_of, supports_epoch_bump, is_valid):
    guard = ask(4, supports_epoch_bump=supports_epoch_bump)
    if is_valid:
        assert append(4, guard).first_offset == 0
    else:
        assert error_of(append, 4, guard) is OUT_OF_ORDER


def test_producer_without_batches_in_its_new_epoch_begins_with_sequence_zero(append, ask, end, error_of):
    append(0, ask(supports_epoch_bump=True))
    end(epoch=1, transaction_version=2)
    guard = ask(1, epoch=1, supports_epoch_bump=True)
    assert error_of(append, 1, guard, epoch=1) is OUT_OF_ORDER
    assert append(0, guard, epoch=1).first_offset == 2


@pytest.mark.parametrize(("waited_ms", "is_known"), [(999, True), (1000, False)])
def test_question_without_an_answer_is_forgotten_as_an_idle_producer(
    new_log, producer_batch, clock, error_of, waited_ms, is_known
):
    log = new_log(verification=True, producer_id_expiration_ms=1000)
    state = log.producer_state
    guard = state.maybe_start_verification(7, 0, 0, clock.wall_clock_ms(), supports_epoch_bump=True)
    clock.advance(waited_ms)
    state.remove_expired_producers(clock.wall_clock_ms())
    batch = producer_batch(0, is_transactional=True)
    if is_known:
        assert log.append_as_leader(batch, 0, verification_guard=guard).first_offset == 0
    else:
        code = error_of(log.append_as_leader, batch, 0, verification_guard=guard)
        assert code is UNVERIFIED


def test_killed_broker_forgets_its_questions(log, append, ask, error_of):
    guard = ask()
    log.recover()
    assert error_of(append, 0, guard) is UNVERIFIED


def test_truncation_keeps_questions(log, append, ask, batch):
    log.append_as_leader(batch(), 0)
    guard = ask()
    log.truncate_to(0)
    assert append(0, guard).first_offset == 0


def test_switched_off_nothing_is_verified(new_log, producer_batch):
    log = new_log(verification=False)
    batch = producer_batch(0, is_transactional=True)
    assert log.append_as_leader(batch, 0).first_offset == 0


@pytest.mark.parametrize(
    ("sequence", "epoch", "lowest"),
    [(5, 3, 4), (3, 3, 3), (9, 4, 9), (0, 2, 4)],
    ids=["higher", "lower", "newer epoch", "older epoch"],
)
def test_lowest_sequence_is_that_of_the_newest_epoch(sequence, epoch, lowest):
    entry = VerificationStateEntry(0, 4, 3, supports_epoch_bump=True)
    entry.update(sequence, epoch)
    assert (entry.lowest_sequence, entry.epoch) == (lowest, max(epoch, 3))
