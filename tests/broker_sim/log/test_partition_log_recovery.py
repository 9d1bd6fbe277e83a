import pytest

from broker_sim.errors import ErrorCode


@pytest.fixture
def log(new_log, batch):
    log = new_log()
    for _ in range(5):
        log.append_as_leader(batch(2), 0)
    return log


def test_high_watermark_is_restored_from_its_checkpoint(log):
    log.offsets.update_high_watermark(4)
    log.offsets.checkpoint_high_watermark()
    log.offsets.update_high_watermark(8)
    log.recover()
    assert (log.high_watermark, log.log_end_offset) == (4, 10)


def test_without_a_checkpoint_the_high_watermark_is_the_log_start(log):
    log.offsets.update_high_watermark(8)
    log.recover()
    assert log.high_watermark == 0


def test_killed_process_loses_no_batch_and_no_epoch(log, batch):
    log.append_as_leader(batch(1), 4)
    before = b"".join(log.read(0, 1 << 30).records)
    log.recover()
    assert b"".join(log.read(0, 1 << 30).records) == before
    assert log.leader_epoch_cache.entries == ((0, 0), (4, 10))


def test_deleted_records_return_unless_the_log_start_was_checkpointed(log):
    log.offsets.update_high_watermark(10)
    log.offsets.maybe_increment_log_start_offset(4)
    log.recover()
    assert log.log_start_offset == 0
    log.offsets.update_high_watermark(10)
    log.offsets.maybe_increment_log_start_offset(6)
    log.offsets.checkpoint_log_start_offset()
    log.recover()
    assert (log.log_start_offset, log.high_watermark) == (6, 6)


def test_log_start_is_never_before_the_first_segment(new_log, batch, clock):
    log = new_log(internal_segment_bytes=len(batch(1)), retention_ms=10)
    for _ in range(3):
        log.append_as_leader(batch(1), 0)
    log.offsets.update_high_watermark(2)
    clock.advance(11)
    log.delete_old_segments()
    log.recover()
    assert log.log_start_offset == log.segments[0].base_offset == 2


def test_log_that_ends_before_its_checkpointed_start_is_emptied(log, batch):
    """A truncation after the checkpoint, and then a kill before the next one."""
    log.offsets.update_high_watermark(10)
    log.offsets.maybe_increment_log_start_offset(8)
    log.offsets.checkpoint_log_start_offset()
    log.truncate_to(4)
    log.recover()
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (8, 8, 8)
    assert log.size_bytes == 0
    assert log.append_as_leader(batch(1), 1).first_offset == 8


def test_closed_log_is_as_before_after_its_recovery(log, producer_batch, is_retry):
    log.append_as_leader(producer_batch(0), 0)
    log.offsets.update_high_watermark(11)
    log.offsets.maybe_increment_log_start_offset(2)
    before = repr(log)
    log.close()
    log.recover()
    assert repr(log) == before
    assert is_retry(log, producer_batch(0))


def test_producers_are_known_again_after_a_kill(log, producer_batch, is_retry, error_of):
    log.append_as_leader(producer_batch(0, 3), 0)
    log.append_as_leader(producer_batch(3, 2), 0)
    log.recover()
    assert log.append_as_leader(producer_batch(0, 3), 0).first_offset == 10
    assert is_retry(log, producer_batch(3, 2))
    gap = producer_batch(9)
    assert error_of(log.append_as_leader, gap, 0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append_as_leader(producer_batch(5), 0).first_offset == 15


def test_snapshot_at_a_roll_keeps_only_the_last_batch(log, producer_batch, is_retry, error_of):
    for sequence in range(3):
        log.append_as_leader(producer_batch(sequence), 0)
    log.roll()
    log.recover()
    assert is_retry(log, producer_batch(2))
    forgotten = producer_batch(1)
    assert error_of(log.append_as_leader, forgotten, 0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_producers_whose_batches_were_truncated_are_forgotten(log, producer_batch, is_retry):
    log.append_as_leader(producer_batch(0), 0)
    log.append_as_leader(producer_batch(1), 0)
    log.truncate_to(11)
    assert not is_retry(log, producer_batch(1), 1)
    log.truncate_to(10)
    assert log.producer_state.active_producers == {}
    assert not is_retry(log, producer_batch(7), 2)


def test_producers_survive_the_deletion_of_their_segments(new_log, producer_batch, is_retry, clock):
    log = new_log(retention_ms=10)
    log.append_as_leader(producer_batch(0), 0)
    log.offsets.update_high_watermark(1)
    clock.advance(11)
    log.delete_old_segments()
    assert log.size_bytes == 0
    assert is_retry(log, producer_batch(0))
