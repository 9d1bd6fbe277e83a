"""Watermarks, truncation, deletion: the claims of `UnifiedLogTest` that need no files."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.protocol.record_batch import split_batches


@pytest.fixture
def log(new_log, batch):
    """Batches of two at 0, 2, 4 (epoch 0) and 6, 8 (epoch 2), two in a segment."""
    log = new_log(internal_segment_bytes=2 * len(batch(2)))
    for epoch in (0, 0, 0, 2, 2):
        log.append_as_leader(batch(2), epoch)
    return log


# -- high watermark -------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "got"), [(-5, 0), (0, 0), (4, 4), (10, 10), (11, 10)])
def test_high_watermark_is_clamped_into_the_log(log, asked, got):
    assert log.offsets.update_high_watermark(asked) == got
    assert log.high_watermark == got == log.last_stable_offset


def test_high_watermark_increments_only_forward(log):
    assert log.offsets.maybe_increment_high_watermark(4)
    assert not log.offsets.maybe_increment_high_watermark(4)
    assert not log.offsets.maybe_increment_high_watermark(2)
    assert log.high_watermark == 4


def test_high_watermark_beyond_the_log_end_raises(log):
    with pytest.raises(ValueError, match="log end"):
        log.offsets.maybe_increment_high_watermark(11)


# -- log start ------------------------------------------------------------------------------------


def test_records_are_deleted_up_to_the_high_watermark(log, error_of):
    log.offsets.update_high_watermark(5)
    assert error_of(log.offsets.maybe_increment_log_start_offset, 6) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.offsets.maybe_increment_log_start_offset(5)
    assert not log.offsets.maybe_increment_log_start_offset(3)
    assert log.log_start_offset == 5
    assert log.leader_epoch_cache.entries == ((0, 5), (2, 6))


def test_high_watermark_never_falls_below_the_log_start(log):
    log.offsets.update_high_watermark(5)
    log.offsets.maybe_increment_log_start_offset(5)
    assert log.offsets.update_high_watermark(0) == 5


def test_append_returns_the_log_start(log, batch):
    log.offsets.update_high_watermark(5)
    log.offsets.maybe_increment_log_start_offset(5)
    assert log.append_as_leader(batch(1), 2).log_start_offset == 5


# -- truncation -----------------------------------------------------------------------------------


def test_truncation_drops_the_batches_that_end_after_the_offset(log, batch):
    log.offsets.update_high_watermark(10)
    size = len(batch(2))
    assert log.truncate_to(6)
    assert (log.log_end_offset, log.high_watermark, log.size_bytes) == (6, 6, 3 * size)
    assert log.leader_epoch_cache.entries == ((0, 0),)
    assert log.append_as_leader(batch(1), 7).first_offset == 6
    assert log.leader_epoch_cache.entries == ((0, 0), (7, 6))


def test_truncation_inside_a_batch_drops_all_of_it_and_ends_at_the_offset(log, batch):
    assert log.truncate_to(3)
    assert (log.log_end_offset, log.size_bytes) == (3, len(batch(2)))
    assert log.append_as_leader(batch(1), 0).first_offset == 3
    assert log.read(2, 1 << 30).size_bytes == len(batch(1))


@pytest.mark.parametrize("offset", [10, 11, 99])
def test_truncation_at_or_beyond_the_end_drops_only_empty_epochs(log, offset):
    log.leader_epoch_cache.assign(5, 10)
    assert not log.truncate_to(offset)
    assert log.log_end_offset == 10
    assert log.leader_epoch_cache.entries == ((0, 0), (2, 6))


def test_truncation_below_the_high_watermark_lowers_it(log):
    log.offsets.update_high_watermark(4)
    log.truncate_to(8)
    assert log.high_watermark == 4
    log.truncate_to(2)
    assert log.high_watermark == 2


def test_truncation_to_zero_empties_the_log(log):
    assert log.truncate_to(0)
    assert (log.log_end_offset, log.size_bytes, len(log.segments)) == (0, 0, 1)
    assert log.leader_epoch_cache.entries == ()


def test_truncation_below_the_log_start_lowers_it(log):
    log.offsets.update_high_watermark(10)
    log.offsets.maybe_increment_log_start_offset(6)
    log.truncate_to(5)
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)


def test_truncation_before_the_first_segment_empties_the_log(log):
    log.offsets.update_high_watermark(10)
    log.offsets.maybe_increment_log_start_offset(8)
    log.delete_old_segments()
    assert log.segments[0].base_offset == 8
    assert log.truncate_to(3)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (3, 3, 3)
    assert log.size_bytes == 0


def test_truncation_to_a_negative_offset_raises(log):
    with pytest.raises(ValueError, match="-1"):
        log.truncate_to(-1)


def test_full_truncation_continues_at_any_offset(log, batch):
    log.offsets.update_high_watermark(10)
    log.truncate_fully_and_start_at(50)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (50, 50, 50)
    assert log.leader_epoch_cache.entries == ()
    assert log.append_as_leader(batch(1), 3).first_offset == 50
    assert log.read(50, 1 << 30).size_bytes == log.size_bytes


def test_fetched_bytes_survive_truncation_and_later_appends(log, batch):
    data = log.read(8, 1 << 30)
    before = [bytes(piece) for piece in data.records]
    log.truncate_to(6)
    log.append_as_leader(batch(2, value=b"other"), 9)
    assert [bytes(piece) for piece in data.records] == before


# -- retention ------------------------------------------------------------------------------------


def bases(log):
    return [segment.base_offset for segment in log.segments]


def test_segments_below_the_log_start_are_deleted_even_when_compacted(new_log, batch):
    log = new_log(internal_segment_bytes=2 * len(batch(2)), cleanup_policy=("compact",))
    # A leader of a compacted topic refuses records without keys, a follower appends them.
    source = new_log()
    for _ in range(5):
        source.append_as_leader(batch(2), 0)
    for piece in split_batches(b"".join(source.read(0, 1 << 30).records)):
        log.append_as_follower(piece)
    log.offsets.update_high_watermark(10)
    log.offsets.maybe_increment_log_start_offset(7)
    assert bases(log) == [0, 4, 8]
    assert log.delete_old_segments() == 1
    assert bases(log) == [4, 8]
    assert log.log_start_offset == 7


@pytest.mark.parametrize(("retention_batches", "left"), [(5, [0, 4, 8]), (3, [4, 8]), (2, [4, 8]), (1, [8]), (0, [10])])
def test_oldest_segments_are_deleted_while_retention_bytes_stay(new_log, batch, retention_batches, left):
    size = len(batch(2))
    log = new_log(internal_segment_bytes=2 * size, retention_bytes=retention_batches * size)
    for _ in range(5):
        log.append_as_leader(batch(2), 0)
    log.offsets.update_high_watermark(10)
    log.delete_old_segments()
    assert bases(log) == left
    assert log.log_start_offset == left[0]


@pytest.mark.parametrize(("passed_ms", "left"), [(1000, [0, 4]), (1001, [4]), (1500, [4])])
def test_segment_is_deleted_by_the_age_of_its_newest_record(new_log, batch, clock, passed_ms, left):
    size = len(batch(2))
    log = new_log(internal_segment_bytes=2 * size, retention_ms=1000)
    written_ms = clock.wall_clock_ms()
    for _ in range(2):
        log.append_as_leader(batch(2, timestamp=written_ms), 0)
    log.append_as_leader(batch(2, timestamp=written_ms + 500), 0)
    log.offsets.update_high_watermark(6)
    clock.advance(passed_ms)
    log.delete_old_segments()
    assert bases(log) == left


def test_last_segment_is_deleted_by_age_and_an_empty_one_follows(new_log, batch, clock):
    log = new_log(retention_ms=1000)
    log.append_as_leader(batch(2), 0)
    log.offsets.update_high_watermark(2)
    clock.advance(1001)
    assert log.delete_old_segments() == 1
    assert bases(log) == [2]
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (2, 2, 0)
    clock.advance(100_000)
    assert log.delete_old_segments() == 0


def test_records_without_timestamps_age_from_their_append(new_log, batch, clock):
    log = new_log(retention_ms=1000)
    log.append_as_leader(batch(2, timestamp=-1), 0)
    log.offsets.update_high_watermark(2)
    clock.advance(1000)
    assert log.delete_old_segments() == 0
    clock.advance(1)
    assert log.delete_old_segments() == 1


def test_nothing_at_or_above_the_high_watermark_is_deleted(log, clock):
    log.offsets.update_high_watermark(7)
    clock.advance(10 * log.config.retention_ms)
    log.delete_old_segments()
    assert bases(log) == [4, 8]
    assert log.log_start_offset == 4


def test_without_limits_nothing_is_deleted(new_log, batch, clock):
    log = new_log(retention_ms=-1, retention_bytes=-1, internal_segment_bytes=len(batch(1)))
    for _ in range(3):
        log.append_as_leader(batch(1), 0)
    log.offsets.update_high_watermark(3)
    clock.advance(10**12)
    assert log.delete_old_segments() == 0
