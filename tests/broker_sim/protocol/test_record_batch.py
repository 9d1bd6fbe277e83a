import struct

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import (
    BATCH_OVERHEAD_BYTES,
    BatchHeader,
    batch_size_at,
    decrement_sequence,
    encode_batch,
    increment_sequence,
    parse_header,
    rebase,
    restamp,
    split_batches,
    validate_produce_records,
    verify_crc,
)
from broker_sim.protocol.records import Record, build_batch, iter_records


def error_of(function, *args):
    with pytest.raises(ApiError) as caught:
        function(*args)
    return caught.value.error_code


@pytest.fixture
def batch():
    return build_batch([Record(b"a", timestamp=10), Record(b"b", b"k", timestamp=12)])


def test_every_field_of_the_header_is_at_its_position():
    fields = BatchHeader(1, 49, 3, 2, 0, 0x3B, 6, 7, 8, 9, 10, 11, 12)
    encoded = encode_batch(fields, b"")
    assert len(encoded) == BATCH_OVERHEAD_BYTES
    header = parse_header(encoded)
    assert header == fields._replace(crc=header.crc)
    assert struct.unpack_from(">q", encoded, 43) == (9,)
    assert struct.unpack_from(">i", encoded, 57) == (12,)


def test_attributes_are_decoded(batch):
    assert parse_header(batch).codec is CompressionCodec.NONE
    header = parse_header(batch)._replace(attributes=0x1 | 0x8 | 0x10 | 0x20)
    assert header.codec is CompressionCodec.GZIP
    assert header.is_log_append_time
    assert header.is_transactional
    assert header.is_control
    assert not header._replace(attributes=0).is_transactional


def test_unknown_codec_is_an_unknown_server_error_as_in_kafka(batch):
    header = parse_header(batch)._replace(attributes=5)
    assert error_of(lambda: header.codec) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_sequences_wrap_after_the_largest_int():
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(2**31 - 2, 3) == 1
    assert decrement_sequence(0, 1) == 2**31 - 1
    assert decrement_sequence(5, 2) == 3


def test_batch_without_a_producer_has_no_last_sequence(batch):
    assert parse_header(batch).last_sequence == -1
    assert parse_header(batch)._replace(base_sequence=2**31 - 1).last_sequence == 0


def test_crc_finds_every_flipped_bit(batch):
    for position in range(21, len(batch)):
        broken = bytearray(batch)
        broken[position] ^= 0x10
        header = parse_header(broken)
        assert error_of(verify_crc, memoryview(broken), header) is ErrorCode.CORRUPT_MESSAGE
    verify_crc(memoryview(batch), parse_header(batch))


def test_rebase_changes_offset_and_epoch_and_leaves_the_crc(batch):
    moved = rebase(memoryview(batch), 2**40, 9)
    header = parse_header(moved)
    assert (header.base_offset, header.partition_leader_epoch) == (2**40, 9)
    assert header.crc == parse_header(batch).crc
    assert moved[16:] == batch[16:]
    assert isinstance(moved, bytes)


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.GZIP])
def test_restamped_records_have_the_time_of_the_append(codec):
    batch = build_batch([Record(b"a", timestamp=10), Record(b"b", timestamp=12)], codec=codec)
    stamped = restamp(memoryview(batch), parse_header(batch), 100, 1, log_append_time=True, max_timestamp=77)
    verify_crc(memoryview(stamped), parse_header(stamped))
    assert [(r.offset, r.timestamp, r.value) for r in iter_records(stamped)] == [(100, 77, b"a"), (101, 77, b"b")]
    back = restamp(memoryview(stamped), parse_header(stamped), 0, -1, log_append_time=False, max_timestamp=12)
    assert back == batch


def test_split_returns_whole_batches_only(batch):
    other = build_batch([b"z" * 50])
    buffer = batch + other
    assert [bytes(b) for b in split_batches(buffer)] == [batch, other]
    for cut in range(len(batch), len(buffer)):
        assert [bytes(b) for b in split_batches(memoryview(buffer)[:cut])] == [batch]
    for cut in range(len(batch)):
        assert list(split_batches(buffer[:cut])) == []


@pytest.mark.parametrize("length", [13, 0, -1, -(2**31)])
def test_impossible_length_is_corrupt(batch, length):
    broken = bytearray(batch)
    struct.pack_into(">i", broken, 8, length)
    assert error_of(batch_size_at, broken) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [3, 127, 128, 255])
def test_unknown_magic_is_corrupt(batch, magic):
    broken = bytearray(batch)
    broken[16] = magic
    assert error_of(batch_size_at, broken) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_batch_of_an_older_format_is_an_invalid_record(batch, magic):
    old = bytearray(batch)
    old[16] = magic
    assert error_of(validate_produce_records, bytes(old), 9) is ErrorCode.INVALID_RECORD


def test_incomplete_batch_has_no_size(batch):
    broken = bytearray(batch)
    struct.pack_into(">i", broken, 8, 2**31 - 1)
    assert batch_size_at(broken) is None
    assert error_of(validate_produce_records, bytes(broken), 9) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("length", [14, 48])
def test_batch_shorter_than_its_header_is_corrupt(batch, length):
    short = bytearray(batch)
    struct.pack_into(">i", short, 8, length)
    assert error_of(parse_header, short) is ErrorCode.CORRUPT_MESSAGE
    assert error_of(parse_header, short[: length + 12]) is ErrorCode.CORRUPT_MESSAGE


def test_produce_accepts_exactly_one_batch(batch):
    validate_produce_records(batch, 9)
    validate_produce_records(memoryview(batch), 9)
    validate_produce_records(batch + batch[:20], 9)
    assert error_of(validate_produce_records, batch + batch, 9) is ErrorCode.INVALID_RECORD
    assert error_of(validate_produce_records, b"", 9) is ErrorCode.INVALID_RECORD
    assert error_of(validate_produce_records, batch[:-1], 9) is ErrorCode.INVALID_RECORD


def test_zstd_needs_produce_version_7():
    pytest.importorskip("cramjam")
    batch = build_batch([b"x"], codec=CompressionCodec.ZSTD)
    validate_produce_records(batch, 7)
    assert error_of(validate_produce_records, batch, 6) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
