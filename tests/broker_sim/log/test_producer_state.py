"""The claims of Kafka's `ProducerStateManagerTest` and `ProducerAppendInfo`, through the log."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.protocol.records import build_end_txn_marker

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
MAX_SEQUENCE = 2**31 - 1


@pytest.fixture
def append(log):
    def call(batch, **kwargs):
        return log.append_as_leader(batch, 0, **kwargs)

    return call


@pytest.fixture
def marker(clock):
    def make(*, is_commit=True, producer_id=7, epoch=0, coordinator_epoch=0):
        return build_end_txn_marker(
            producer_id=producer_id,
            producer_epoch=epoch,
            is_commit=is_commit,
            timestamp=clock.wall_clock_ms(),
            coordinator_epoch=coordinator_epoch,
        )

    return make


def test_sequences_must_follow_each_other(append, producer_batch, error_of):
    append(producer_batch(0, 3))
    assert error_of(append, producer_batch(4)) is OUT_OF_ORDER
    assert error_of(append, producer_batch(2)) is OUT_OF_ORDER
    assert append(producer_batch(3)).first_offset == 3


@pytest.mark.parametrize("sequence", [0, 5, MAX_SEQUENCE])
def test_unknown_producer_may_begin_with_any_sequence(append, producer_batch, sequence):
    assert append(producer_batch(sequence)).first_offset == 0


def test_sequence_wraps_to_zero(append, producer_batch, error_of):
    append(producer_batch(MAX_SEQUENCE))
    assert error_of(append, producer_batch(1)) is OUT_OF_ORDER
    assert append(producer_batch(0)).first_offset == 1


def test_sequence_wraps_inside_a_batch(append, producer_batch, is_retry, log):
    append(producer_batch(MAX_SEQUENCE - 1, 4))
    assert log.producer_state.active_producers[7].last_sequence == 1
    assert is_retry(log, producer_batch(MAX_SEQUENCE - 1, 4))
    assert append(producer_batch(2)).first_offset == 4


def test_retry_is_answered_with_the_offsets_of_the_first_append(append, producer_batch, log, clock):
    written_ms = clock.wall_clock_ms()
    append(producer_batch(0, 2))
    append(producer_batch(2, 3))
    before = log.size_bytes
    clock.advance(10)
    info = append(producer_batch(2, 3))
    assert (info.first_offset, info.last_offset) == (2, 4)
    assert info.log_append_time_ms == written_ms
    assert (log.log_end_offset, log.size_bytes) == (5, before)


def test_retry_of_the_last_five_batches_is_recognised_and_of_no_older(append, producer_batch, error_of):
    for sequence in range(6):
        append(producer_batch(sequence))
    for sequence in range(1, 6):
        assert append(producer_batch(sequence)).first_offset == sequence
    assert error_of(append, producer_batch(0)) is OUT_OF_ORDER


def test_overlap_with_a_known_batch_is_out_of_order(append, producer_batch, error_of):
    append(producer_batch(0, 3))
    assert error_of(append, producer_batch(0, 2)) is OUT_OF_ORDER
    assert error_of(append, producer_batch(1, 2)) is OUT_OF_ORDER


def test_sequence_0_follows_the_largest_one(append, producer_batch, error_of):
    append(producer_batch(2**31 - 2, 2))
    assert error_of(append, producer_batch(1)) is OUT_OF_ORDER
    assert append(producer_batch(0)).first_offset == 2


def test_older_epoch_is_fenced(append, producer_batch, error_of):
    append(producer_batch(0, epoch=5))
    assert error_of(append, producer_batch(1, epoch=4)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert error_of(append, producer_batch(0, epoch=4)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_new_epoch_begins_at_sequence_zero(append, producer_batch, error_of):
    append(producer_batch(0, 3))
    assert error_of(append, producer_batch(3, epoch=1)) is OUT_OF_ORDER
    assert append(producer_batch(0, epoch=1)).first_offset == 3
    assert error_of(append, producer_batch(0, 3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert append(producer_batch(1, epoch=1)).first_offset == 4


def test_each_producer_has_its_own_sequences(append, producer_batch):
    append(producer_batch(0, producer_id=1))
    append(producer_batch(0, producer_id=2))
    assert append(producer_batch(1, producer_id=1)).first_offset == 2
    assert append(producer_batch(0, producer_id=2)).first_offset == 1


def test_coordinator_batch_is_checked_by_epoch_not_by_sequence(append, producer_batch, error_of):
    append(producer_batch(0, epoch=3))
    assert append(producer_batch(9, epoch=3), origin="coordinator").first_offset == 1
    old = producer_batch(10, epoch=2)
    assert error_of(append, old, origin="coordinator") is ErrorCode.INVALID_PRODUCER_EPOCH


def test_follower_appends_what_its_leader_accepted(new_log, log, append, producer_batch, is_retry):
    append(producer_batch(5, epoch=3))
    append(producer_batch(0, epoch=4))
    follower = new_log()
    follower.append_as_follower(log.read(0, 1 << 30).records)
    assert is_retry(follower, producer_batch(0, epoch=4), 1)


@pytest.mark.parametrize(("silent_ms", "is_known"), [(999, True), (1000, False), (1001, False)])
def test_silent_producer_is_forgotten_at_its_expiration(new_log, producer_batch, is_retry, clock, silent_ms, is_known):
    log = new_log(producer_id_expiration_ms=1000)
    log.append_as_leader(producer_batch(0), 0)
    clock.advance(silent_ms)
    log.producer_state.remove_expired_producers(clock.wall_clock_ms())
    assert (7 in log.producer_state.active_producers) == is_known
    assert is_retry(log, producer_batch(0)) == is_known


@pytest.mark.parametrize(("silent_ms", "is_known"), [(999, True), (1000, False)])
def test_recovered_producer_is_forgotten_if_it_is_expired(
    new_log, producer_batch, is_retry, clock, silent_ms, is_known
):
    log = new_log(producer_id_expiration_ms=1000)
    log.append_as_leader(producer_batch(0), 0)
    clock.advance(silent_ms)
    log.recover()
    assert is_retry(log, producer_batch(0)) == is_known


def test_producer_in_a_transaction_does_not_expire(new_log, producer_batch, clock):
    log = new_log(producer_id_expiration_ms=1000)
    log.append_as_leader(producer_batch(0, is_transactional=True), 0)
    clock.advance(5000)
    log.producer_state.remove_expired_producers(clock.wall_clock_ms())
    assert 7 in log.producer_state.active_producers


# -- transactions ---------------------------------------------------------------------------------


def test_open_transaction_holds_the_last_stable_offset(log, append, batch, producer_batch, marker):
    append(batch(2))
    append(producer_batch(0, 2, is_transactional=True))
    append(batch(1))
    log.offsets.update_high_watermark(5)
    assert log.last_stable_offset == 2
    append(marker(), origin="coordinator")
    log.offsets.update_high_watermark(5)
    assert log.last_stable_offset == 2, "the marker is not below the high watermark"
    log.offsets.update_high_watermark(6)
    assert log.last_stable_offset == 6


@pytest.mark.parametrize(("start", "stable"), [(1, 1), (2, 2), (3, 2), (4, 2), (5, 5), (6, 6)])
def test_log_start_inside_an_open_transaction_is_stable_from_its_batch_on(
    log, append, batch, producer_batch, start, stable
):
    append(batch(1))
    append(producer_batch(0, 1, is_transactional=True))
    append(producer_batch(1, 3, is_transactional=True))
    append(batch(1))
    log.offsets.update_high_watermark(6)
    log.offsets.maybe_increment_log_start_offset(start)
    assert log.last_stable_offset == stable


def test_last_stable_offset_never_exceeds_the_high_watermark(log, append, producer_batch):
    append(producer_batch(0, 3, is_transactional=True))
    assert log.last_stable_offset == 0
    append(producer_batch(3, 3, is_transactional=True))
    log.offsets.update_high_watermark(3)
    assert log.last_stable_offset == 0


def test_oldest_open_transaction_sets_the_last_stable_offset(log, append, producer_batch, marker):
    for producer_id in (1, 2, 3):
        append(producer_batch(0, producer_id=producer_id, is_transactional=True))
    for producer_id, expected in ((2, 0), (1, 2), (3, 6)):
        append(marker(producer_id=producer_id), origin="coordinator")
        log.offsets.update_high_watermark(log.log_end_offset)
        assert log.last_stable_offset == expected


def test_plain_write_inside_a_transaction_is_refused(append, producer_batch, marker, error_of):
    append(producer_batch(0, is_transactional=True))
    assert error_of(append, producer_batch(1)) is ErrorCode.INVALID_TXN_STATE
    append(marker(), origin="coordinator")
    assert append(producer_batch(1)).first_offset == 2


def test_read_lists_the_aborted_transactions_it_touches(log, append, batch, producer_batch, marker):
    append(producer_batch(0, 2, producer_id=1, is_transactional=True))
    append(producer_batch(0, 2, producer_id=2, is_transactional=True))
    append(marker(producer_id=2, is_commit=False), origin="coordinator")
    append(marker(producer_id=1, is_commit=True), origin="coordinator")
    append(producer_batch(2, 2, producer_id=2, is_transactional=True))
    append(marker(producer_id=2, is_commit=False), origin="coordinator")
    append(batch(3))

    def aborted(start, end):
        return [(a.producer_id, a.first_offset) for a in log.producer_state.transaction_index.collect(start, end)]

    assert aborted(0, 12) == [(2, 2), (2, 6)]
    assert aborted(0, 2) == []
    assert aborted(0, 3) == [(2, 2)]
    assert aborted(4, 6) == [(2, 2)]
    assert aborted(5, 6) == []
    assert aborted(5, 12) == [(2, 6)]
    assert aborted(9, 12) == []


def test_committed_transaction_is_not_listed(log, append, producer_batch, marker):
    append(producer_batch(0, is_transactional=True))
    append(marker(), origin="coordinator")
    assert log.producer_state.transaction_index.collect(0, 10) == []


def test_marker_without_a_transaction_changes_nothing_but_the_epochs(log, append, marker):
    append(marker(epoch=2, coordinator_epoch=5), origin="coordinator")
    entry = log.producer_state.active_producers[7]
    assert (entry.producer_epoch, entry.coordinator_epoch) == (2, 5)
    assert log.producer_state.first_unstable_offset is None


def test_marker_of_an_older_coordinator_is_fenced(append, marker, error_of):
    append(marker(coordinator_epoch=1), origin="coordinator")
    old = marker(coordinator_epoch=0)
    assert error_of(append, old, origin="coordinator") is ErrorCode.TRANSACTION_COORDINATOR_FENCED


@pytest.mark.parametrize(
    ("transaction_version", "epoch", "is_valid"),
    [(0, 2, False), (0, 3, True), (0, 4, True), (2, 2, False), (2, 3, False), (2, 4, True)],
)
def test_marker_epoch_must_be_current_and_from_version_2_on_newer(
    append, producer_batch, marker, error_of, transaction_version, epoch, is_valid
):
    append(producer_batch(0, epoch=3, is_transactional=True))
    kwargs = {"origin": "coordinator", "transaction_version": transaction_version}
    if is_valid:
        assert append(marker(epoch=epoch), **kwargs).first_offset == 1
    else:
        code = error_of(append, marker(epoch=epoch), **kwargs)
        assert code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_repeated_marker_of_version_2_is_appended(append, producer_batch, marker):
    append(producer_batch(0, epoch=3, is_transactional=True))
    for offset in (1, 2):
        info = append(marker(epoch=4), origin="coordinator", transaction_version=2)
        assert info.first_offset == offset


def test_bumped_epoch_begins_with_sequence_zero(append, producer_batch, marker, error_of):
    append(producer_batch(0, 5, epoch=3, is_transactional=True))
    append(marker(epoch=4), origin="coordinator", transaction_version=2)
    assert error_of(append, producer_batch(5, epoch=4)) is OUT_OF_ORDER
    assert append(producer_batch(0, epoch=4, is_transactional=True)).first_offset == 6


def test_malformed_marker_is_refused(log, append, batch, error_of):
    broken = batch(1, producer_id=7, producer_epoch=0, is_control=True)
    assert error_of(append, broken, origin="coordinator") is ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 0


def test_transactions_are_known_again_after_a_kill(log, append, producer_batch, marker):
    append(producer_batch(0, 2, producer_id=1, is_transactional=True))
    append(marker(producer_id=1, is_commit=False), origin="coordinator")
    append(producer_batch(0, 2, producer_id=2, is_transactional=True))
    log.offsets.update_high_watermark(5)
    log.offsets.checkpoint_high_watermark()
    before = (log.last_stable_offset, log.producer_state.transaction_index.collect(0, 9))
    log.recover()
    assert (log.last_stable_offset, log.producer_state.transaction_index.collect(0, 9)) == before
    log.roll()
    log.recover()
    assert (log.last_stable_offset, log.producer_state.transaction_index.collect(0, 9)) == before
    assert before[0] == 3


def test_truncated_marker_opens_its_transaction_again(log, append, producer_batch, marker):
    append(producer_batch(0, 2, is_transactional=True))
    append(marker(is_commit=False), origin="coordinator")
    log.offsets.update_high_watermark(3)
    assert log.last_stable_offset == 3
    log.truncate_to(2)
    log.offsets.update_high_watermark(2)
    assert log.last_stable_offset == 0
    assert log.producer_state.transaction_index.collect(0, 9) == []
    append(marker(is_commit=True), origin="coordinator")
    log.offsets.update_high_watermark(3)
    assert log.last_stable_offset == 3


def test_aborted_list_continues_after_a_transaction_that_ended_early(log, append, producer_batch, marker):
    append(producer_batch(0, producer_id=1, is_transactional=True))
    append(producer_batch(0, producer_id=2, is_transactional=True))
    append(marker(producer_id=2, is_commit=False), origin="coordinator")
    append(marker(producer_id=1, is_commit=False), origin="coordinator")
    listed = log.producer_state.transaction_index.collect(0, 2)
    assert [(txn.producer_id, txn.first_offset) for txn in listed] == [(2, 1), (1, 0)]


def test_list_of_a_read_reaches_to_the_end_of_its_segment(log, append, batch, producer_batch, marker):
    append(batch())
    append(producer_batch(0, producer_id=1, is_transactional=True))
    append(marker(producer_id=1, is_commit=False), origin="coordinator")
    log.roll()
    append(producer_batch(0, producer_id=2, is_transactional=True))
    append(marker(producer_id=2, is_commit=False), origin="coordinator")
    log.offsets.update_high_watermark(5)
    assert [txn.first_offset for txn in log.aborted_transactions(0, 1)] == [1]
    assert [txn.first_offset for txn in log.aborted_transactions(3, 1)] == [3]
