import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.record_batch import parse_header

COUNTS = (1, 3, 2, 5)
"""Records per batch: the batches hold the offsets 0, 1-3, 4-5, 6-10."""


@pytest.fixture
def log(new_log, batch):
    log = new_log()
    for count in COUNTS:
        log.append_as_leader(batch(count), 0)
    return log


@pytest.fixture
def whole(log):
    return b"".join(log.read(0, 1 << 30).records)


@pytest.mark.parametrize(("offset", "first"), [(0, 0), (1, 1), (2, 1), (3, 1), (4, 4), (5, 4), (6, 6), (10, 6)])
def test_read_begins_with_the_batch_that_holds_the_offset(log, whole, offset, first):
    data = log.read(offset, 1 << 30)
    assert parse_header(data.records[0]).base_offset == first
    assert b"".join(data.records) == whole[log.position(first) :]


def test_read_returns_a_slice_of_the_log_for_every_size(log, whole):
    first_batch = log.position(1)
    for size in range(len(whole) + 2):
        data = log.read(0, size)
        assert b"".join(data.records) == whole[:size]
        assert data.size_bytes == min(size, len(whole))
        at_least_one = log.read(0, size, min_one_message=True)
        assert b"".join(at_least_one.records) == whole[: max(size, first_batch)]


@pytest.mark.parametrize("log_directory", ["memory"], indirect=True)
def test_whole_batches_are_returned_by_reference(log):
    assert log.read(0, 1 << 30).records[1] is log.read(1, 1 << 30).records[0]


@pytest.mark.parametrize(("upper", "end"), [(0, 0), (1, 1), (2, 1), (3, 1), (4, 4), (5, 4), (6, 6), (10, 6), (11, 11)])
def test_read_stops_before_the_batch_that_holds_the_upper_bound(log, whole, upper, end):
    data = log.read(0, 1 << 30, upper_bound_offset=upper, min_one_message=True)
    assert b"".join(data.records) == whole[: log.position(end)]


def test_read_at_the_end_is_empty(log):
    data = log.read(11, 1 << 30, min_one_message=True)
    assert (list(data.records), data.size_bytes) == ([], 0)


def test_read_at_or_above_the_upper_bound_is_empty(log):
    for offset in (4, 7, 11):
        data = log.read(offset, 1 << 30, upper_bound_offset=4, min_one_message=True)
        assert (list(data.records), data.size_bytes) == ([], 0)


@pytest.mark.parametrize("offset", [-1, 12, 2**40])
def test_read_outside_the_log_is_out_of_range(log, error_of, offset):
    assert error_of(log.read, offset, 1) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_read_before_the_log_start_is_out_of_range(log, error_of):
    log.offsets.update_high_watermark(11)
    log.offsets.maybe_increment_log_start_offset(2)
    assert error_of(log.read, 1, 1) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert parse_header(log.read(2, 1 << 30).records[0]).base_offset == 1


def test_read_of_an_empty_log_is_empty(new_log, error_of):
    log = new_log()
    assert log.read(0, 100, min_one_message=True).size_bytes == 0
    assert error_of(log.read, 1, 100) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_read_ends_at_the_end_of_its_segment(new_log, batch):
    size = len(batch(1))
    log = new_log(internal_segment_bytes=2 * size)
    for _ in range(5):
        log.append_as_leader(batch(1), 0)
    assert [log.read(offset, 1 << 30).size_bytes // size for offset in range(6)] == [2, 1, 2, 1, 1, 0]
    assert log.read(0, 1 << 30, upper_bound_offset=1).size_bytes == size
    assert log.read(1, 1 << 30, upper_bound_offset=2).size_bytes == size


def test_position_is_the_number_of_bytes_before_an_offset(new_log, batch):
    size = len(batch(1))
    log = new_log(internal_segment_bytes=2 * size)
    for _ in range(5):
        log.append_as_leader(batch(1), 0)
    assert [log.position(offset) for offset in range(7)] == [i * size for i in range(6)] + [5 * size]


def test_position_does_not_change_when_old_segments_are_deleted(new_log, batch):
    size = len(batch(1))
    log = new_log(internal_segment_bytes=2 * size)
    for _ in range(5):
        log.append_as_leader(batch(1), 0)
    log.offsets.update_high_watermark(5)
    log.offsets.maybe_increment_log_start_offset(4)
    assert log.delete_old_segments() == 2
    assert log.position(4) == 4 * size
    assert log.position(5) - log.position(4) == size == log.size_bytes


def test_read_reports_a_limit_smaller_than_the_first_batch(log):
    first_batch = log.position(1)
    assert log.read(0, first_batch - 1).first_entry_incomplete
    assert not log.read(0, first_batch).first_entry_incomplete
    assert not log.read(0, 1, min_one_message=True).first_entry_incomplete


def test_negative_limit_raises_where_there_is_something_to_read(log):
    with pytest.raises(ApiError) as caught:
        log.read(0, -1, min_one_message=True)
    assert caught.value.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert log.read(11, -1).size_bytes == 0
