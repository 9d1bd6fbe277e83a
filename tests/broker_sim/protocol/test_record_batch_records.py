import struct
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.compression import CompressionCodec, compress, decompress, decompress_in_pieces
from broker_sim.protocol.record_batch import encode_batch, parse_header, recompress, verify_crc
from broker_sim.protocol.records import (
    EndTxnMarker,
    Record,
    build_batch,
    build_end_txn_marker,
    iter_records,
    read_end_txn_marker,
)

CODECS = list(CompressionCodec)
maybe_bytes = st.none() | st.binary(max_size=40)
records = st.lists(
    st.builds(
        Record,
        value=maybe_bytes,
        key=maybe_bytes,
        timestamp=st.integers(0, 2**62),
        offset=st.just(-1),
        headers=st.lists(st.tuples(st.text(max_size=5), maybe_bytes), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=20,
)


@pytest.fixture(autouse=True)
def needs_cramjam():
    pytest.importorskip("cramjam")


@given(records, st.sampled_from(CODECS), st.integers(0, 2**60))
def test_records_read_equal_the_records_built(items, codec, base_offset):
    batch = build_batch(items, base_offset=base_offset, codec=codec)
    header = parse_header(batch)
    verify_crc(memoryview(batch), header)
    assert header.size_bytes == len(batch)
    assert header.records_count == len(items)
    assert header.max_timestamp == max(item.timestamp for item in items)
    expected = [item._replace(offset=base_offset + i) for i, item in enumerate(items)]
    assert list(iter_records(batch)) == expected


@given(st.binary(max_size=100_000), st.sampled_from(CODECS))
def test_decompressed_bytes_equal_the_compressed_ones(data, codec):
    assert decompress(codec, compress(codec, data)) == data
    assert decompress(codec, memoryview(compress(codec, memoryview(data)))) == data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("other", CODECS)
def test_recompressed_batch_has_the_same_records(codec, other):
    batch = build_batch([Record(b"v" * 100, timestamp=5), Record(b"w", timestamp=6)], codec=codec)
    again = recompress(memoryview(batch), parse_header(batch), other)
    assert parse_header(again).codec is other
    verify_crc(memoryview(again), parse_header(again))
    assert list(iter_records(again)) == list(iter_records(batch))


def test_clients_decode_our_batches():
    from aiokafka.record.default_records import DefaultRecordBatch

    for codec in (CompressionCodec.NONE, CompressionCodec.GZIP):
        built = build_batch(
            [Record(b"v", b"k", 7, headers=(("h", b"x"), ("n", None))), Record(None, timestamp=9)],
            base_offset=40,
            codec=codec,
        )
        theirs = DefaultRecordBatch(bytearray(built))
        assert theirs.validate_crc()
        found = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in theirs]
        assert found == [(40, 7, b"k", b"v", [("h", b"x"), ("n", None)]), (41, 9, None, None, [])]


def test_batches_built_by_clients_are_decoded_here():
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    for codec in (0, 1):
        builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 10_000)
        builder.append(0, 50, b"k", b"v", [("h", b"x")])
        builder.append(1, 49, None, b"w", [])
        assert list(iter_records(bytes(builder.build()))) == [
            Record(b"v", b"k", 50, 0, (("h", b"x"),)),
            Record(b"w", None, 49, 1, ()),
        ]


@pytest.mark.parametrize("is_commit", [True, False])
def test_end_txn_marker_read_equals_the_one_built(is_commit):
    batch = build_end_txn_marker(producer_id=9, producer_epoch=3, is_commit=is_commit, timestamp=5, coordinator_epoch=4)
    header = parse_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 3, -1)
    assert read_end_txn_marker(batch) == EndTxnMarker(is_commit, 4)


@pytest.mark.parametrize(
    "record", [Record(b"\0" * 6, b"\0\0"), Record(b"", b"\0" * 4), Record(b"\0" * 6, b"\0\0\0\x07")]
)
def test_other_control_record_is_refused_as_an_end_txn_marker(record):
    batch = build_batch([record], producer_id=1, producer_epoch=0, is_control=True)
    assert error_of(read_end_txn_marker, batch) is ErrorCode.INVALID_RECORD


def error_of(function, *args):
    with pytest.raises(ApiError) as caught:
        function(*args)
    return caught.value.error_code


def outcome(function, *args):
    try:
        return function(*args)
    except ApiError as error:
        return error.error_code


@given(records, st.data())
def test_random_records_are_read_or_an_invalid_record(items, data):
    batch = bytearray(build_batch(items))
    position = data.draw(st.integers(61, len(batch) - 1))
    batch[position] = data.draw(st.integers(0, 255))
    count = data.draw(st.integers(-3, len(items) + 3))
    struct.pack_into(">i", batch, 57, count)
    read = outcome(lambda: len(list(iter_records(bytes(batch)))))
    assert read is ErrorCode.INVALID_RECORD or read == count > 0


@given(st.binary(max_size=200), st.sampled_from(CODECS[1:]))
@example(b"\x80\x80\x80\x80\x02", CompressionCodec.SNAPPY)  # it announces 512 MiB
def test_random_bytes_are_not_decompressed(data, codec):
    plain = outcome(decompress, codec, data)
    refused = {ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE}
    assert isinstance(plain, bytes) or plain in refused


@pytest.mark.parametrize("codec", CODECS[1:])
def test_decompression_stops_at_its_limit(codec):
    packed = compress(codec, bytes(3_000_000))
    assert len(decompress(codec, packed, 3_000_000)) == 3_000_000
    assert error_of(decompress, codec, packed, 2_999_999) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("cut", [1, 5])
@pytest.mark.parametrize("codec", CODECS[1:])
def test_truncated_compression_is_an_invalid_record(codec, cut):
    packed = compress(codec, b"0123456789" * 20)
    assert error_of(decompress, codec, packed[:-cut]) is ErrorCode.INVALID_RECORD


def test_raw_snappy_block_is_decompressed():
    import cramjam

    assert decompress(CompressionCodec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"abc"))) == b"abc"


def test_blocks_of_snappy_are_put_together_however_small_they_are():
    import cramjam

    block = bytes(cramjam.snappy.compress_raw(bytes(64)))
    blocks = (len(block).to_bytes(4, "big") + block) * 16_384
    pieces = list(decompress_in_pieces(CompressionCodec.SNAPPY, compress(CompressionCodec.SNAPPY, b"") + blocks))
    assert b"".join(pieces) == bytes(1 << 20)
    assert len(pieces) < 10  # who reads a record copies what it has with each piece


@pytest.mark.parametrize("codec", CODECS[2:])
def test_error_of_a_missing_package_names_the_extra(codec, monkeypatch):
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(ApiError, match=r"broker-sim\[compression\]") as caught:
        decompress(codec, b"")
    assert caught.value.error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert error_of(compress, codec, b"") is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_gzip_needs_no_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "cramjam", None)
    batch = build_batch([b"x"], codec=CompressionCodec.GZIP)
    assert [record.value for record in iter_records(batch)] == [b"x"]


def test_batch_without_records_can_be_encoded_and_read():
    batch = build_batch([])
    assert list(iter_records(batch)) == []
    assert encode_batch(parse_header(batch), b"") == batch


@given(st.lists(st.binary(max_size=300), max_size=40))
def test_batch_of_values_equals_the_batch_of_their_records(values):
    assert build_batch(values) == build_batch([Record(value) for value in values])
