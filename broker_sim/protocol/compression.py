"""The compression of a batch's records; mirrors `CompressionType` and Kafka's framing of each codec.

gzip needs only the standard library; snappy, lz4 and zstd need the optional package `cramjam`
(extra `compression`). The broker stores compressed batches as they are. It decompresses only for a
look-up by timestamp, a compacted topic, or a topic with another codec.

Deliberate difference: a batch that decompresses to more than a limit, at most `MAX_DECOMPRESSED_BYTES`, is
refused, so that a malicious batch cannot exhaust the memory. Decompression proceeds piece by piece on
demand, so that it stops at the first invalid record.
"""

from __future__ import annotations

import importlib
import struct
import zlib
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DECOMPRESSED_BYTES = 256 * 1024 * 1024

_GZIP_WINDOW_BITS = 31
_FIRST_GUESS_BYTES = 64 * 1024
_LARGEST_PIECE_BYTES = 1024 * 1024
"""Maximum size of the result of one zlib call, because other threads wait for it."""
_OUTPUT_TOO_SMALL = "failed to write whole buffer"
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_INT32 = struct.Struct(">i")


class CompressionCodec(IntEnum):
    """The codec in the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompress(codec: CompressionCodec, data: bytes | memoryview, limit_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """Return the decompressed bytes of `data`.

    Raises `ApiError`: INVALID_RECORD for invalid data, MESSAGE_TOO_LARGE for data that decompresses to more than
    the limit, UNSUPPORTED_COMPRESSION_TYPE if the codec's package is missing.
    """
    return b"".join(decompress_in_pieces(codec, data, limit_bytes))


def decompress_in_pieces(
    codec: CompressionCodec, data: bytes | memoryview, limit_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Iterator[bytes]:
    """Yield the decompressed bytes of `data` in pieces of growing size; raises as `decompress`, during iteration."""
    if codec is CompressionCodec.NONE:
        yield bytes(data)
        return
    if codec is CompressionCodec.GZIP:
        yield from _gunzip(data, limit_bytes)
        return
    cramjam = _cramjam(codec)
    try:
        if codec is CompressionCodec.SNAPPY:
            yield from _in_growing_pieces(_unsnappy(cramjam, memoryview(data), limit_bytes))
        else:
            frame = cramjam.lz4 if codec is CompressionCodec.LZ4 else cramjam.zstd
            yield from _unpack_frame(codec, cramjam, frame, data, limit_bytes)
    except (cramjam.DecompressionError, struct.error) as error:
        raise _unreadable(codec, str(error)) from error


def compress(codec: CompressionCodec, data: bytes | memoryview, level: int | None = None) -> bytes:
    """Return `data` compressed in Kafka's framing of the codec; the same input gives the same bytes.

    `level` is for gzip, lz4 and zstd; None is the default of their libraries. Raises `ApiError`
    UNSUPPORTED_COMPRESSION_TYPE if the codec's package is missing.
    """
    if codec is CompressionCodec.NONE:
        return bytes(data)
    if codec is CompressionCodec.GZIP:
        gzip = zlib.compressobj(-1 if level is None else level, wbits=_GZIP_WINDOW_BITS)
        return gzip.compress(data) + gzip.flush()
    cramjam = _cramjam(codec)
    if codec is CompressionCodec.SNAPPY:
        return b"".join(_xerial_frame(cramjam, memoryview(data)))
    if codec is CompressionCodec.ZSTD:
        return bytes(cramjam.zstd.compress(data, level=level))
    # Kafka reads only independent blocks.
    lz4 = cramjam.lz4.Compressor(level=level, block_linked=False)
    lz4.compress(bytes(data))
    return bytes(lz4.finish())


def _cramjam(codec: CompressionCodec) -> Any:
    try:
        return importlib.import_module("cramjam")
    except ImportError as error:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Reading records compressed with {codec.name.lower()} needs the package cramjam: "
            "pip install 'broker-sim[compression]'",
        ) from error


def _unreadable(codec: CompressionCodec, why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, f"Records compressed with {codec.name.lower()}: {why}")


def _too_large(codec: CompressionCodec, limit_bytes: int) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE, f"Records compressed with {codec.name.lower()} have more than {limit_bytes} bytes"
    )


def _gunzip(data: bytes | memoryview, limit_bytes: int) -> Iterator[bytes]:
    gzip = zlib.decompressobj(wbits=_GZIP_WINDOW_BITS)
    size, remaining_bytes = _FIRST_GUESS_BYTES, limit_bytes
    packed: bytes | memoryview = data
    while not gzip.eof:
        try:
            plain = gzip.decompress(packed, size)
        except zlib.error as error:
            raise _unreadable(CompressionCodec.GZIP, str(error)) from error
        packed = gzip.unconsumed_tail
        remaining_bytes -= len(plain)
        if remaining_bytes < 0:
            raise _too_large(CompressionCodec.GZIP, limit_bytes)
        if not plain and not gzip.eof:
            raise _unreadable(CompressionCodec.GZIP, "cut short")
        yield plain
        size = min(2 * size, _LARGEST_PIECE_BYTES)


def _unpack_frame(
    codec: CompressionCodec, cramjam: Any, frame: Any, data: bytes | memoryview, limit_bytes: int
) -> Iterator[bytes]:
    """Decompress an lz4 or zstd frame into a buffer that doubles, because the decompressed size is unknown.

    A buffer that was too small is full of decompressed bytes.
    """
    size, known_bytes = min(_FIRST_GUESS_BYTES, limit_bytes), 0
    while True:
        plain = bytearray(size)
        try:
            used_bytes = frame.decompress_into(data, plain)
        except cramjam.DecompressionError as error:
            if _OUTPUT_TOO_SMALL not in str(error):
                raise
            if size == limit_bytes:
                raise _too_large(codec, limit_bytes) from error
            used_bytes = None
        yield bytes(memoryview(plain)[known_bytes:used_bytes])
        if used_bytes is not None:
            return
        known_bytes, size = size, min(4 * size, limit_bytes)


def _unsnappy(cramjam: Any, data: memoryview, limit_bytes: int) -> Iterator[bytes]:
    """Decompress snappy: Java clients send xerial frames, other clients one raw block."""
    remaining_bytes = limit_bytes

    def unpack(block: memoryview) -> bytes:
        if cramjam.snappy.decompress_raw_len(block) > remaining_bytes:
            raise _too_large(CompressionCodec.SNAPPY, limit_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))

    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield unpack(data)
        return
    position = len(_XERIAL_HEADER)
    while position < len(data):
        (size,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if not 0 < size <= len(data) - position:
            raise _unreadable(CompressionCodec.SNAPPY, f"a block of {size} bytes does not fit")
        plain = unpack(data[position : position + size])
        remaining_bytes -= len(plain)
        position += size
        yield plain


def _in_growing_pieces(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Join blocks into growing pieces, however small they are, because the reader copies its data with each piece."""
    piece, piece_bytes, size = [], 0, _FIRST_GUESS_BYTES
    for block in blocks:
        piece.append(block)
        piece_bytes += len(block)
        if piece_bytes >= size:
            yield b"".join(piece)
            piece, piece_bytes, size = [], 0, min(2 * size, _LARGEST_PIECE_BYTES)
    yield b"".join(piece)


def _xerial_frame(cramjam: Any, data: memoryview) -> Iterator[bytes]:
    yield _XERIAL_HEADER
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        yield _INT32.pack(len(block))
        yield block
