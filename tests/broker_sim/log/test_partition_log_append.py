import struct

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.log import AppendOrigin, RecordValidationError
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import encode_batch, parse_header, split_batches, verify_crc
from broker_sim.protocol.records import Record, build_batch, iter_records


def changed(batch, **fields):
    """Return the batch with other header fields and a right CRC."""
    return encode_batch(parse_header(batch)._replace(**fields), batch[61:])


def stored(log):
    return list(log.read(log.log_start_offset, 1 << 30).records)


def test_batches_get_consecutive_offsets_and_the_leader_epoch(log, batch):
    first = log.append_as_leader(batch(3), 5)
    second = log.append_as_leader(memoryview(batch(2)), 6)
    assert (first.first_offset, first.last_offset) == (0, 2)
    assert (second.first_offset, second.last_offset) == (3, 4)
    assert log.log_end_offset == 5
    batches = list(split_batches(b"".join(stored(log))))
    headers = [parse_header(b) for b in batches]
    assert [(h.base_offset, h.partition_leader_epoch) for h in headers] == [(0, 5), (3, 6)]
    assert log.leader_epoch_cache.entries == ((5, 0), (6, 3))
    for b, header in zip(batches, headers, strict=True):
        verify_crc(b, header)


def test_append_returns_size_timestamp_and_log_start(log, batch, clock):
    data = batch(3, timestamp=77)
    info = log.append_as_leader(data, 0)
    assert info.valid_bytes == len(data)
    assert info.max_timestamp == 77
    assert info.log_append_time_ms == -1
    assert info.log_start_offset == 0
    assert log.size_bytes == len(data)


def test_appended_bytes_do_not_change_with_the_request_buffer(log, batch):
    data = bytearray(batch(1))
    log.append_as_leader(memoryview(data), 0)
    data[61:] = bytes(len(data) - 61)
    (kept,) = stored(log)
    assert isinstance(kept, bytes)
    verify_crc(memoryview(kept), parse_header(kept))


def test_append_does_not_move_the_high_watermark(log, batch):
    log.append_as_leader(batch(3), 0)
    assert log.high_watermark == 0


def test_incomplete_second_batch_is_dropped(log, batch):
    data = batch(1)
    assert log.append_as_leader(data + data[:40], 0).valid_bytes == len(data)
    assert log.size_bytes == len(data)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda b: b"", ErrorCode.INVALID_RECORD),
        (lambda b: b[:-1], ErrorCode.INVALID_RECORD),
        (lambda b: b + b, ErrorCode.INVALID_RECORD),
        (lambda b: b + b[:8] + struct.pack(">i", 3) + b[12:], ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:-1] + b"\xff", ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:8] + struct.pack(">i", 13) + b[12:], ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:8] + struct.pack(">i", 48) + b[12:], ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:16] + b"\x03" + b[17:], ErrorCode.CORRUPT_MESSAGE),
        (lambda b: b[:16] + b"\x01" + b[17:], ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, base_offset=1), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, records_count=0), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, records_count=-1), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, records_count=4), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, last_offset_delta=5), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, attributes=0x20), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, producer_id=1, base_sequence=-1), ErrorCode.INVALID_RECORD),
        (lambda b: changed(b, attributes=5), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_invalid_batch_is_refused_and_changes_nothing(log, batch, error_of, damage, expected):
    log.append_as_leader(batch(2), 0)
    before = repr(log), stored(log), log.leader_epoch_cache.entries
    assert error_of(log.append_as_leader, damage(batch(3)), 1) is expected
    assert (repr(log), stored(log), log.leader_epoch_cache.entries) == before


def test_only_a_coordinator_may_append_a_control_batch(log, batch, error_of):
    marker = changed(batch(1), attributes=0x20)
    assert error_of(log.append_as_leader, marker, 0) is ErrorCode.INVALID_RECORD
    assert log.append_as_leader(marker, 0, origin="coordinator").first_offset == 0


def test_batch_of_exactly_max_message_bytes_is_appended(new_log, batch, error_of):
    data = batch(1)
    log = new_log(max_message_bytes=len(data))
    log.append_as_leader(data, 0)
    log.update_config(log.config.replaced(max_message_bytes=len(data) - 1))
    assert error_of(log.append_as_leader, data, 0) is ErrorCode.MESSAGE_TOO_LARGE
    assert log.log_end_offset == 1


def test_size_is_checked_before_the_crc_as_in_kafka(new_log, batch, error_of):
    log = new_log(max_message_bytes=10)
    assert error_of(log.append_as_leader, batch(1)[:-1] + b"!", 0) is ErrorCode.MESSAGE_TOO_LARGE


def test_batch_larger_than_a_segment_is_refused(new_log, batch, error_of):
    data = batch(1)
    log = new_log(internal_segment_bytes=len(data))
    log.append_as_leader(data, 0)
    assert error_of(log.append_as_leader, batch(2), 0) is ErrorCode.RECORD_LIST_TOO_LARGE


# -- timestamps -----------------------------------------------------------------------------------


def test_log_append_time_replaces_every_timestamp(new_log, batch, clock):
    log = new_log(message_timestamp_type="LogAppendTime")
    clock.advance(5)
    now_ms = clock.wall_clock_ms()
    info = log.append_as_leader(batch(2, timestamp=3), 0)
    assert (info.log_append_time_ms, info.max_timestamp) == (now_ms, now_ms)
    (kept,) = stored(log)
    header = parse_header(kept)
    verify_crc(memoryview(kept), header)
    assert header.is_log_append_time
    assert [record.timestamp for record in iter_records(kept)] == [now_ms, now_ms]


def test_log_append_time_topic_refuses_a_batch_that_claims_it(new_log, batch, error_of):
    log = new_log(message_timestamp_type="LogAppendTime")
    data = batch(1, log_append_time=True)
    assert error_of(log.append_as_leader, data, 0) is ErrorCode.INVALID_TIMESTAMP


def test_create_time_topic_resets_the_log_append_time_flag(log, batch, clock):
    now_ms = clock.wall_clock_ms()
    log.append_as_leader(batch(1, log_append_time=True), 0)
    (kept,) = stored(log)
    header = parse_header(kept)
    assert not header.is_log_append_time
    assert header.max_timestamp == now_ms
    verify_crc(memoryview(kept), header)


@pytest.mark.parametrize(("ahead_ms", "is_valid"), [(999, True), (1000, True), (1001, False)])
def test_timestamp_may_be_in_the_future_up_to_the_limit(new_log, batch, clock, error_of, ahead_ms, is_valid):
    log = new_log(message_timestamp_after_max_ms=1000)
    data = batch(1, timestamp=clock.wall_clock_ms() + ahead_ms)
    if is_valid:
        log.append_as_leader(data, 0)
    else:
        assert error_of(log.append_as_leader, data, 0) is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize(("behind_ms", "is_valid"), [(999, True), (1000, True), (1001, False)])
def test_timestamp_may_be_in_the_past_up_to_the_limit(new_log, clock, error_of, behind_ms, is_valid):
    log = new_log(message_timestamp_before_max_ms=1000)
    now_ms = clock.wall_clock_ms()
    data = build_batch([Record(b"", timestamp=now_ms), Record(b"", timestamp=now_ms - behind_ms)])
    if is_valid:
        log.append_as_leader(data, 0)
    else:
        assert error_of(log.append_as_leader, data, 0) is ErrorCode.INVALID_TIMESTAMP


def test_records_without_a_timestamp_are_never_too_old(new_log, batch):
    log = new_log(message_timestamp_before_max_ms=1000)
    assert log.append_as_leader(batch(1, timestamp=-1), 0).max_timestamp == -1


def test_error_names_the_rejected_records(new_log, clock):
    log = new_log(message_timestamp_after_max_ms=0)
    now_ms = clock.wall_clock_ms()
    records = [Record(b"", timestamp=now_ms + delta) for delta in (0, 1, 0, 2)]
    with pytest.raises(RecordValidationError) as caught:
        log.append_as_leader(build_batch(records), 0)
    assert [error.batch_index for error in caught.value.record_errors] == [1, 3]
    assert caught.value.error_code is ErrorCode.INVALID_TIMESTAMP


def test_wrong_max_timestamp_is_corrected_when_the_records_are_read(log, batch):
    data = changed(batch(1, timestamp=5), max_timestamp=2**60)
    assert log.append_as_leader(data, 0).max_timestamp == 5
    assert parse_header(stored(log)[0]).max_timestamp == 5


# -- compression and compaction -------------------------------------------------------------------


def test_compressed_batch_is_stored_unchanged(log, batch):
    data = batch(5, codec=CompressionCodec.GZIP)
    log.append_as_leader(data, 0)
    assert stored(log)[0][61:] == data[61:]


@pytest.mark.parametrize(
    ("compression_type", "codec"), [("gzip", CompressionCodec.GZIP), ("uncompressed", CompressionCodec.NONE)]
)
@pytest.mark.parametrize("sent", [CompressionCodec.GZIP, CompressionCodec.NONE])
def test_batch_is_recompressed_with_the_topic_codec(new_log, batch, compression_type, codec, sent):
    log = new_log(compression_type=compression_type)
    info = log.append_as_leader(batch(5, codec=sent), 3)
    (kept,) = stored(log)
    header = parse_header(kept)
    assert header.codec is codec
    assert (header.base_offset, header.partition_leader_epoch) == (0, 3)
    assert info.valid_bytes == len(kept) == log.size_bytes
    verify_crc(memoryview(kept), header)
    assert [record.value for record in iter_records(kept)] == [b"value"] * 5


@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", 1, 9), ("lz4", 1, 9), ("zstd", 1, 22)])
def test_topic_compresses_at_its_level(new_log, codec, low, high):
    if codec != "gzip":
        pytest.importorskip("cramjam")
    words = " ".join(str(number * number) for number in range(5_000)).encode()
    sizes = {}
    for level in (low, high):
        log = new_log(compression_type=codec, **{f"compression_{codec}_level": level})
        log.append_as_leader(build_batch([Record(words)]), 0)
        (kept,) = stored(log)
        assert [record.value for record in iter_records(kept)] == [words]
        sizes[level] = len(kept)
    assert sizes[high] < sizes[low]


def test_recompressed_batch_must_fit_into_max_message_bytes(new_log, batch, error_of):
    data = batch(50, codec=CompressionCodec.GZIP)
    log = new_log(compression_type="uncompressed", max_message_bytes=len(data))
    assert error_of(log.append_as_leader, data, 0) is ErrorCode.MESSAGE_TOO_LARGE


def test_compacted_topic_refuses_records_without_keys(new_log):
    log = new_log(cleanup_policy=("compact",))
    log.append_as_leader(build_batch([Record(b"v", b"k", 1)]), 0)
    with pytest.raises(RecordValidationError) as caught:
        log.append_as_leader(build_batch([Record(b"v", b"k", 1), Record(b"v", None, 1)]), 0)
    assert caught.value.error_code is ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in caught.value.record_errors] == [1]
    assert log.log_end_offset == 1


@pytest.mark.parametrize("origin", [AppendOrigin.CLIENT, AppendOrigin.COORDINATOR])
@pytest.mark.parametrize("defect", ["no key", "crc"])
def test_only_batches_built_in_the_process_are_trusted(new_log, error_of, origin, defect):
    log = new_log(cleanup_policy=("compact",))
    data = bytearray(build_batch([Record(b"v", None if defect == "no key" else b"k", 1)]))
    if defect == "crc":
        data[-1] ^= 1
    expected = ErrorCode.INVALID_RECORD if defect == "no key" else ErrorCode.CORRUPT_MESSAGE
    assert error_of(log.append_as_leader, bytes(data), 0, origin) is expected
    assert log.append_as_leader(bytes(data), 0, AppendOrigin.BUILT_HERE).last_offset == 0


def test_batches_built_in_the_process_obey_a_limit_on_old_timestamps(new_log, error_of, clock):
    log = new_log(cleanup_policy=("compact",), message_timestamp_before_max_ms=1_000)
    old = build_batch([Record(b"v", b"k", clock.wall_clock_ms() - 1_001)])
    error = error_of(log.append_as_leader, old, 0, AppendOrigin.BUILT_HERE)
    assert error is ErrorCode.INVALID_TIMESTAMP


# -- segments -------------------------------------------------------------------------------------


def test_segment_rolls_when_the_next_batch_does_not_fit(new_log, batch):
    size = len(batch(1))
    log = new_log(internal_segment_bytes=2 * size)
    for _ in range(5):
        log.append_as_leader(batch(1), 0)
    assert [s.base_offset for s in log.segments] == [0, 2, 4]
    assert [s.size_bytes for s in log.segments] == [2 * size, 2 * size, size]


@pytest.mark.parametrize(("age_ms", "segments"), [(1000, 1), (1001, 2)])
def test_segment_rolls_by_the_timestamps_of_its_records(new_log, batch, age_ms, segments):
    log = new_log(segment_ms=1000)
    log.append_as_leader(batch(1, timestamp=5000), 0)
    log.append_as_leader(batch(1, timestamp=5000 + age_ms), 0)
    assert len(log.segments) == segments


@pytest.mark.parametrize(("age_ms", "segments"), [(1000, 1), (1001, 2)])
def test_segment_of_records_without_timestamps_rolls_by_its_own_age(new_log, batch, clock, age_ms, segments):
    log = new_log(segment_ms=1000)
    log.append_as_leader(batch(1, timestamp=-1), 0)
    clock.advance(age_ms)
    log.append_as_leader(batch(1, timestamp=-1), 0)
    assert len(log.segments) == segments
