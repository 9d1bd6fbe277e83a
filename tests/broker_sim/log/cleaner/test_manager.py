"""Which log is cleaned next, and up to where."""

import pytest

from broker_sim.log.cleaner import LogCleanerManager
from broker_sim.log.cleaner.manager import LogToClean

A, B = b"a", b"b"
HOUR_MS = 3_600_000


@pytest.fixture
def manager(clock):
    return LogCleanerManager(clock)


def append_segments(log, count):
    for _ in range(count):
        log.append((A, b"v"))
        log.roll()


def test_log_is_cleaned_when_its_dirty_share_is_above_the_ratio(compacted, manager):
    log = compacted(min_cleanable_dirty_ratio=0.5)
    append_segments(log, 2)
    found = manager.grab_filthiest_compacted_log([log.log])
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (0, 2)
    assert found.cleanable_ratio == 1.0
    manager.done_cleaning(found, 2)
    append_segments(log, 2)
    assert manager.grab_filthiest_compacted_log([log.log]) is None  # just half of it is dirty
    assert manager.dirtiest_log_cleanable_ratio == 0.5
    append_segments(log, 1)
    assert manager.grab_filthiest_compacted_log([log.log]).first_dirty_offset == 2


def test_filthiest_log_is_first_and_one_in_progress_is_left_alone(compacted, manager):
    clean, filthy = compacted(), compacted()
    filthy.log.topic_partition = filthy.log.topic_partition._replace(partition=1)
    append_segments(clean, 1)
    manager.done_cleaning(manager.grab_filthiest_compacted_log([clean.log]), 1)
    append_segments(clean, 2)
    append_segments(filthy, 1)
    logs = [clean.log, filthy.log]
    first = manager.grab_filthiest_compacted_log(logs)
    assert first.log is filthy.log
    assert manager.deletable_logs(logs) == [clean.log]
    assert manager.grab_filthiest_compacted_log(logs).log is clean.log
    assert manager.grab_filthiest_compacted_log(logs) is None


@pytest.mark.parametrize(("age_ms", "end"), [(HOUR_MS - 1, 0), (HOUR_MS, 1)])
def test_min_compaction_lag_holds_back_young_segments(compacted, age_ms, end):
    log = compacted(min_compaction_lag_ms=HOUR_MS)
    append_segments(log, 1)
    log.clock.advance(age_ms)
    append_segments(log, 1)
    assert log.to_clean().first_uncleanable_offset == end


@pytest.mark.parametrize(("age_ms", "must"), [(HOUR_MS, False), (HOUR_MS + 1, True)])
def test_max_compaction_lag_cleans_at_any_ratio(compacted, age_ms, must):
    log = compacted(max_compaction_lag_ms=HOUR_MS, min_cleanable_dirty_ratio=1.0)
    append_segments(log, 1)
    log.clock.advance(age_ms)
    assert log.to_clean().must_be_cleaned is must


def test_segment_is_rolled_by_the_largest_lag(compacted):
    log = compacted(max_compaction_lag_ms=1000, segment_ms=HOUR_MS)
    for _ in range(3):
        log.append((A, b"v"))
        log.clock.advance(501)
    assert [segment.base_offset for segment in log.log.segments] == [0, 2]


def test_records_above_the_high_watermark_are_not_cleaned(log):
    append_segments(log, 3)
    log.log.offsets.high_watermark = 1
    assert log.to_clean().first_uncleanable_offset == 1
    log.log.offsets.high_watermark = 3
    assert log.to_clean().first_uncleanable_offset == 3


def test_truncation_aborts_the_cleaning_and_makes_what_follows_dirty(compacted, manager):
    log = compacted(min_cleanable_dirty_ratio=0.0)
    append_segments(log, 3)
    key = log.log.topic_partition
    manager.done_cleaning(manager.grab_filthiest_compacted_log([log.log]), 3)
    append_segments(log, 2)
    again = manager.grab_filthiest_compacted_log([log.log])
    manager.truncated(key, 4)
    assert not manager.is_in_progress(again)
    assert manager.first_dirty_offsets[key] == 3
    manager.truncated(key, 2)
    assert manager.first_dirty_offsets[key] == 2


def test_offset_outside_of_the_log_is_set_to_its_start(compacted, manager):
    log = compacted(min_cleanable_dirty_ratio=0.0)
    append_segments(log, 3)
    key = log.log.topic_partition
    manager.done_cleaning(manager.grab_filthiest_compacted_log([log.log]), 1)
    log.log.offsets.maybe_increment_log_start_offset(2)
    assert manager.grab_filthiest_compacted_log([log.log]).first_dirty_offset == 2
    assert manager.first_dirty_offsets[key] == 2


def test_partition_that_failed_is_left_alone_until_it_is_deleted(log, manager):
    append_segments(log, 1)
    key = log.log.topic_partition
    manager.mark_uncleanable(key)
    assert manager.grab_filthiest_compacted_log([log.log]) is None
    manager.forget(key)
    assert isinstance(manager.grab_filthiest_compacted_log([log.log]), LogToClean)


def test_log_that_is_not_compacted_is_neither_cleaned_nor_deleted(log, manager):

    append_segments(log, 2)
    log.log.update_config(log.log.config.replaced(cleanup_policy=("delete",)))
    assert manager.grab_filthiest_compacted_log([log.log]) is None
    assert manager.deletable_logs([log.log]) == []
