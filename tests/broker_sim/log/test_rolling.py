"""When a segment is rolled, beside its size and its age: full indexes and the jitter of the age."""

import pytest

from broker_sim.log.storage import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES
from broker_sim.protocol.records import Record, build_batch


def append(log, count, step_ms=0):
    for number in range(count):
        record = Record(b"v" * 100, timestamp=1_000_000 + number * step_ms)
        log.append_as_leader(build_batch([record]), 0)


def bases(log):
    return [segment.base_offset for segment in log.segments]


def test_segment_is_rolled_when_its_offset_index_is_full(new_log):
    log = new_log(index_interval_bytes=0, segment_index_bytes=5 * OFFSET_ENTRY_BYTES)
    append(log, 13)  # the first batch has no entry, the next five have one each
    assert bases(log) == [0, 6, 12]


def test_segment_is_rolled_when_its_time_index_has_one_entry_left(new_log):
    log = new_log(index_interval_bytes=0, segment_index_bytes=4 * TIME_ENTRY_BYTES)
    append(log, 9, step_ms=1)
    assert bases(log) == [0, 4, 8]


@pytest.mark.parametrize("interval_bytes", [100, 1_000])
def test_entries_count_not_batches(new_log, interval_bytes):
    log = new_log(index_interval_bytes=interval_bytes, segment_index_bytes=5 * OFFSET_ENTRY_BYTES)
    append(log, 60)
    size = len(build_batch([Record(b"v" * 100, timestamp=1_000_000)]))
    per_entry = interval_bytes // size + 1
    assert bases(log)[1] == 5 * per_entry + 1


def test_segments_roll_earlier_by_their_share_of_the_jitter(new_log, clock):
    ages = []
    log = new_log(segment_ms=10_000, segment_jitter_ms=5_000)
    for _ in range(20):
        start_ms = clock.now_ms()
        count = len(log.segments)
        while len(log.segments) == count:
            clock.advance_to(clock.now_ms() + 100)
            record = Record(b"v", timestamp=clock.wall_clock_ms())
            log.append_as_leader(build_batch([record]), 0)
        ages.append(clock.now_ms() - start_ms)
    assert 5_000 <= min(ages) < 6_500
    assert 8_500 < max(ages) <= 10_200
    assert len(set(ages)) > 10


def test_without_jitter_segments_roll_at_their_age(new_log, clock):
    log = new_log(segment_ms=10_000)
    for advance_ms, segments in ((0, 1), (10_000, 1), (1, 2)):
        clock.advance_to(clock.now_ms() + advance_ms)
        record = Record(b"v", timestamp=clock.wall_clock_ms())
        log.append_as_leader(build_batch([record]), 0)
        assert len(log.segments) == segments
