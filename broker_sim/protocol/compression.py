"""The compression of a batch's records; mirrors `CompressionType` and Kafka's framing of each codec.

gzip needs the standard library only; snappy, lz4 and zstd need the optional package `cramjam`
(extra `compression`). The broker stores compressed batches as they are. It decompresses only for a
look-up by timestamp, a compacted topic, or a topic with another codec.

Deliberate difference: a batch that decompresses to more than `MAX_DECOMPRESSED_BYTES` is refused,
so that a malicious batch cannot exhaust the memory.
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

__all__ = ["MAX_DECOMPRESSED_BYTES", "CompressionCodec", "compress", "decompress"]

MAX_DECOMPRESSED_BYTES = 256 * 1024 * 1024

_GZIP_WINDOW_BITS = 31
_FIRST_GUESS_BYTES = 64 * 1024
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


def decompress(codec: CompressionCodec, data: bytes | memoryview) -> bytes:
    """Return the plain bytes of `data`.

    Raises `ApiError`: INVALID_RECORD for bytes that the codec cannot read or that unpack to more
    than `MAX_DECOMPRESSED_BYTES`, UNSUPPORTED_COMPRESSION_TYPE without the codec's package.
    """
    if codec is CompressionCodec.NONE:
        return bytes(data)
    if codec is CompressionCodec.GZIP:
        return _gunzip(data)
    cramjam = _cramjam(codec)
    try:
        if codec is CompressionCodec.SNAPPY:
            return b"".join(_unsnappy(cramjam, memoryview(data)))
        frame = cramjam.lz4 if codec is CompressionCodec.LZ4 else cramjam.zstd
        return _unpack_frame(cramjam, frame, data)
    except (cramjam.DecompressionError, struct.error) as error:
        raise _unreadable(codec, str(error)) from error


def compress(codec: CompressionCodec, data: bytes | memoryview, level: int | None = None) -> bytes:
    """Return `data` in the framing of that codec; the same input gives the same bytes.

    `level` is that of gzip, lz4 or zstd; None is the one of their libraries. Raises `ApiError` UNSUPPORTED_COMPRESSION_TYPE without the codec's package.
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
    # Kafka reads independent blocks only.
    lz4 = cramjam.lz4.Compressor(level=level, block_linked=False)
    lz4.compress(bytes(data))
    return bytes(lz4.finish())


def _cramjam(codec: CompressionCodec) -> Any:
    try:
        return importlib.import_module("cramjam")
    except ImportError as error:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Records compressed with {codec.name.lower()} can be looked into only with the "
            "package cramjam: pip install 'broker-sim[compression]'",
        ) from error


def _unreadable(codec: CompressionCodec, why: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_RECORD, f"Records compressed with {codec.name.lower()}: {why}"
    )


def _gunzip(data: bytes | memoryview) -> bytes:
    gzip = zlib.decompressobj(wbits=_GZIP_WINDOW_BITS)
    try:
        plain = gzip.decompress(data, MAX_DECOMPRESSED_BYTES)
    except zlib.error as error:
        raise _unreadable(CompressionCodec.GZIP, str(error)) from error
    if not gzip.eof:
        raise _unreadable(CompressionCodec.GZIP, "cut short, or too large")
    return plain


def _unpack_frame(cramjam: Any, frame: Any, data: bytes | memoryview) -> bytes:
    """Decompress an lz4 or zstd frame into a buffer that doubles, as the plain size is unknown."""
    size = max(_FIRST_GUESS_BYTES, 8 * len(data))
    while True:
        plain = bytearray(min(size, MAX_DECOMPRESSED_BYTES))
        try:
            used = frame.decompress_into(data, plain)
        except cramjam.DecompressionError as error:
            if _OUTPUT_TOO_SMALL not in str(error) or size >= MAX_DECOMPRESSED_BYTES:
                raise
            size *= 2
        else:
            return bytes(memoryview(plain)[:used])


def _unsnappy(cramjam: Any, data: memoryview) -> Iterator[bytes]:
    """Decompress snappy: Java clients send the frames of xerial, other clients one raw block."""
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield _unsnappy_block(cramjam, data, MAX_DECOMPRESSED_BYTES)
        return
    left = MAX_DECOMPRESSED_BYTES
    position = len(_XERIAL_HEADER)
    while position < len(data):
        (size,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if not 0 < size <= len(data) - position:
            raise _unreadable(CompressionCodec.SNAPPY, f"a block of {size} bytes does not fit")
        plain = _unsnappy_block(cramjam, data[position : position + size], left)
        left -= len(plain)
        position += size
        yield plain


def _unsnappy_block(cramjam: Any, block: memoryview, limit_bytes: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > limit_bytes:
        raise _unreadable(CompressionCodec.SNAPPY, "too large")
    return bytes(cramjam.snappy.decompress_raw(block))


def _xerial_frame(cramjam: Any, data: memoryview) -> Iterator[bytes]:
    yield _XERIAL_HEADER
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        yield _INT32.pack(len(block))
        yield block
