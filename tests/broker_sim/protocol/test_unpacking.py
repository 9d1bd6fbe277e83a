"""How far a compressed batch is unpacked: no further than its records are wanted."""

import random

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol import records as module
from broker_sim.protocol.compression import CompressionCodec, compress, decompress, decompress_in_pieces
from broker_sim.protocol.record_batch import encode_batch, parse_header
from broker_sim.protocol.records import build_batch, iter_records

CODECS = list(CompressionCodec)[1:]
MB = 1 << 20

pytestmark = pytest.mark.parametrize("codec", CODECS)


@pytest.fixture(autouse=True)
def needs_cramjam():
    pytest.importorskip("cramjam")


@pytest.fixture
def unpacked(monkeypatch):
    """The sizes of the pieces that `iter_records` has asked for."""
    sizes = []

    def counted(*args):
        for piece in decompress_in_pieces(*args):
            sizes.append(len(piece))
            yield piece

    monkeypatch.setattr(module, "decompress_in_pieces", counted)
    return sizes


def test_records_are_unpacked_as_they_are_taken(codec, unpacked):
    rng = random.Random(1)
    values = [rng.randbytes(50_000) + bytes(50_000) for _ in range(40)]
    taken = iter_records(build_batch(values, codec=codec))
    assert next(taken).value == values[0]
    assert sum(unpacked) < MB
    assert [record.value for record in taken] == values[1:]
    assert sum(unpacked) > 3 * MB


def test_zeros_that_are_no_records_are_given_up_at_the_first(codec, unpacked):
    packed = compress(codec, bytes(10 * MB))
    header = parse_header(build_batch([b""]))
    attributes = header.attributes | codec
    batch = encode_batch(header._replace(records_count=1_000_000, attributes=attributes), packed)
    with pytest.raises(ApiError) as refused:
        list(iter_records(batch))
    assert refused.value.error_code is ErrorCode.INVALID_RECORD
    assert sum(unpacked) <= 64 * 1024


@pytest.mark.parametrize("missing", [0, 1])
def test_limit_is_the_last_size_that_is_unpacked(codec, missing):
    packed = compress(codec, bytes(3 * MB))
    if not missing:
        assert decompress(codec, packed, 3 * MB) == bytes(3 * MB)
        return
    with pytest.raises(ApiError) as refused:
        decompress(codec, packed, 3 * MB - missing)
    assert refused.value.error_code is ErrorCode.MESSAGE_TOO_LARGE


def test_gzip_is_unpacked_a_megabyte_at_a_time_so_that_other_threads_run(codec):
    sizes = [len(piece) for piece in decompress_in_pieces(codec, compress(codec, bytes(5 * MB)))]
    assert sum(sizes) == 5 * MB
    if codec is CompressionCodec.GZIP:
        assert max(sizes) == MB


def test_pieces_are_the_whole(codec):
    rng = random.Random(2)
    plain = b"".join(rng.randbytes(1_000) * rng.randrange(1, 50) for _ in range(200))
    assert b"".join(decompress_in_pieces(codec, compress(codec, plain))) == plain
