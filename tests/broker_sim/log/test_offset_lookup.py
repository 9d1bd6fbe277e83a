import pytest

from broker_sim.log.offset_lookup import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    TimestampAndOffset,
)
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import NO_TIMESTAMP
from broker_sim.protocol.records import Record, build_batch

# The records that can be the first ones after a time in the log of the fixture.
STAMPED_10 = TimestampAndOffset(10, offset=0, leader_epoch=0)
STAMPED_30 = TimestampAndOffset(30, offset=1, leader_epoch=0)
STAMPED_25 = TimestampAndOffset(25, offset=3, leader_epoch=3)
STAMPED_60 = TimestampAndOffset(60, offset=4, leader_epoch=3)


def append(log, *timestamps, epoch=0, codec=CompressionCodec.NONE):
    records = [Record(b"", timestamp=timestamp) for timestamp in timestamps]
    return log.append_as_leader(build_batch(records, codec=codec), epoch)


@pytest.fixture(params=["one segment", "a segment a batch"])
def log(new_log, request):
    """Offsets 0-6 stamped 10, 30, 20, 25, 60, 40, 50 in four batches and three epochs."""
    log = new_log(internal_segment_bytes=1 << 30 if request.param == "one segment" else 110)
    append(log, 10, 30)
    append(log, 20, 25, epoch=3, codec=CompressionCodec.GZIP)
    append(log, 60, epoch=3)
    append(log, 40, 50, epoch=4)
    return log


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, STAMPED_10),
        (10, STAMPED_10),
        (11, STAMPED_30),
        (25, STAMPED_30),
        (30, STAMPED_30),
        (31, STAMPED_60),
        (45, STAMPED_60),
        (60, STAMPED_60),
        (61, None),
    ],
)
def test_first_record_at_or_after_the_time_is_found(log, timestamp, expected):
    assert log.fetch_offset_by_timestamp(timestamp) == expected


def test_deleted_records_are_not_found(log):
    log.offsets.update_high_watermark(7)
    log.offsets.maybe_increment_log_start_offset(3)
    # Kafka searches only the first segment that is as new, though its records may be deleted.
    in_one_segment = len(log.segments) == 1
    assert log.fetch_offset_by_timestamp(10) == (STAMPED_25 if in_one_segment else None)
    assert log.fetch_offset_by_timestamp(40) == STAMPED_60


def test_largest_timestamp_is_found_at_its_first_record(log):
    assert log.fetch_offset_by_timestamp(MAX_TIMESTAMP) == STAMPED_60
    append(log, 60, 60, epoch=5)
    assert log.fetch_offset_by_timestamp(MAX_TIMESTAMP) == STAMPED_60
    append(log, 1, 70, 70, epoch=5)
    assert log.fetch_offset_by_timestamp(MAX_TIMESTAMP) == TimestampAndOffset(70, offset=10, leader_epoch=5)


@pytest.mark.parametrize("timestamp", [EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP])
def test_earliest_is_the_log_start_with_its_epoch(log, timestamp):
    assert log.fetch_offset_by_timestamp(timestamp) == TimestampAndOffset(NO_TIMESTAMP, offset=0, leader_epoch=0)
    log.offsets.update_high_watermark(7)
    log.offsets.maybe_increment_log_start_offset(3)
    assert log.fetch_offset_by_timestamp(timestamp) == TimestampAndOffset(NO_TIMESTAMP, offset=3, leader_epoch=3)


def test_latest_is_the_log_end_with_the_newest_epoch(log):
    assert log.fetch_offset_by_timestamp(LATEST_TIMESTAMP) == TimestampAndOffset(NO_TIMESTAMP, offset=7, leader_epoch=4)


def test_latest_tiered_offset_is_unknown(log):
    assert log.fetch_offset_by_timestamp(LATEST_TIERED_TIMESTAMP) == TimestampAndOffset(
        NO_TIMESTAMP, offset=-1, leader_epoch=-1
    )


def test_empty_log_has_earliest_and_latest_but_no_records(new_log):
    log = new_log()
    assert log.fetch_offset_by_timestamp(EARLIEST_TIMESTAMP) == TimestampAndOffset(
        NO_TIMESTAMP, offset=0, leader_epoch=-1
    )
    assert log.fetch_offset_by_timestamp(LATEST_TIMESTAMP) == TimestampAndOffset(
        NO_TIMESTAMP, offset=0, leader_epoch=-1
    )
    assert log.fetch_offset_by_timestamp(MAX_TIMESTAMP) is None
    assert log.fetch_offset_by_timestamp(0) is None


def test_first_of_records_without_timestamps_is_the_newest_one(new_log):
    log = new_log()
    append(log, -1)
    append(log, -1, -1)
    assert log.fetch_offset_by_timestamp(MAX_TIMESTAMP) == TimestampAndOffset(NO_TIMESTAMP, offset=0, leader_epoch=0)
    assert log.fetch_offset_by_timestamp(0) is None


def test_log_append_time_belongs_to_the_first_record_of_the_batch(new_log, clock):
    log = new_log(message_timestamp_type="LogAppendTime")
    append(log, 1, 2, 3)
    clock.advance(5)
    append(log, 1, 2)
    now_ms = clock.wall_clock_ms()
    assert log.fetch_offset_by_timestamp(MAX_TIMESTAMP) == TimestampAndOffset(now_ms, offset=3, leader_epoch=0)
    assert log.fetch_offset_by_timestamp(now_ms - 4) == TimestampAndOffset(now_ms, offset=3, leader_epoch=0)


def test_truncated_records_are_not_found(log):
    log.truncate_to(4)
    assert log.fetch_offset_by_timestamp(MAX_TIMESTAMP) == STAMPED_30
    assert log.fetch_offset_by_timestamp(31) is None
