"""Record batches, message format v2; mirrors `DefaultRecordBatch` and `ByteBufferLogInputStream`.

    offset  0  base offset             int64  ┐
            8  length of the rest      int32  │ not under the CRC: the leader writes these
           12  partition leader epoch  int32  ┘ without reading the records
           16  magic (2)               int8
           17  CRC-32C of all below    uint32
           21  attributes              int16    codec (bits 0-2), timestamp type (3),
                                                transactional (4), control (5), delete horizon (6)
           23  last offset delta       int32
           27  base timestamp          int64    with bit 6, the delete horizon (KIP-534)
           35  max timestamp           int64
           43  producer id             int64
           51  producer epoch          int16
           53  base sequence           int32
           57  number of records       int32
           61  records, compressed together

The broker's hot path reads the 61 bytes of a header and the CRC, never the records
(those are in `broker_sim.protocol.records`).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.compression import MAX_DECOMPRESSED_BYTES, CompressionCodec, compress, decompress
from broker_sim.protocol.crc32c import crc32c

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH_OVERHEAD_BYTES: Final = 61
LOG_OVERHEAD_BYTES: Final = 12
MAGIC_V2: Final = 2
NO_PARTITION_LEADER_EPOCH: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

_MIN_RECORD_SIZE_BYTES = 14
_MAGIC_OFFSET = 16
_ATTRIBUTES_OFFSET = 21
MAX_SEQUENCE: Final = 2**31 - 1
ATTRIBUTES_LOW_BYTE: Final = 22
"""Position of the flags in a batch, in bytes."""
_ZSTD_MIN_PRODUCE_VERSION = 7

_HEADER = Struct(">qiibIhiqqqhii")
_PREFIX = Struct(">qii")
_MAGIC_AND_CRC = Struct(">bI")
_UNDER_CRC = Struct(">hiqqqhii")
_LENGTH = Struct(">i")
assert _HEADER.size == BATCH_OVERHEAD_BYTES


class BatchHeader(NamedTuple):
    """The fixed part of a batch, in the order of the wire."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_bytes(self) -> int:
        """Size of the whole batch, including this header, in bytes."""
        return self.length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; it wraps to 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> CompressionCodec:
        """The records' compression. Raises UNKNOWN_SERVER_ERROR for an unknown id, as Kafka does."""
        codec_id = self.attributes & CODEC_MASK
        try:
            return CompressionCodec(codec_id)
        except ValueError:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {codec_id}") from None

    @property
    def is_log_append_time(self) -> bool:
        """Whether the max timestamp is the append time and applies to every record."""
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        """Whether the batch has a marker written by the broker instead of a client's records."""
        return self.attributes & CONTROL_FLAG != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """Time in ms from which the cleaner may drop tombstones or the marker; None before the first cleaning."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None


# Like BatchHeader._make, without checking the number of fields.
_as_header: Final[Callable[[type[BatchHeader], tuple[int, ...]], BatchHeader]] = tuple.__new__


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence `increment` records later, wrapping from 2^31 - 1 to 0."""
    return (sequence + increment) & MAX_SEQUENCE


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence `decrement` records earlier, wrapping from 0 to 2^31 - 1."""
    return (sequence - decrement) & MAX_SEQUENCE


def batch_size_at(buffer: bytes | bytearray | memoryview, position: int = 0) -> int | None:
    """Return the size of the batch at `position`, or None if the batch is incomplete.

    Raises CORRUPT_MESSAGE for an impossible length and for an unknown magic.
    """
    remaining = len(buffer) - position
    if remaining < LOG_OVERHEAD_BYTES:
        return None
    length: int = _LENGTH.unpack_from(buffer, position + 8)[0]
    if length < _MIN_RECORD_SIZE_BYTES:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({_MIN_RECORD_SIZE_BYTES})",
        )
    if remaining <= _MAGIC_OFFSET:
        return None
    magic = buffer[position + _MAGIC_OFFSET]
    if magic > MAGIC_V2:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    size = length + LOG_OVERHEAD_BYTES
    return size if size <= remaining else None


def split_batches(buffer: bytes | memoryview) -> list[memoryview]:
    """Return every whole batch of `buffer` as a slice, without an incomplete batch at the end.

    Raises CORRUPT_MESSAGE for an impossible length and for an unknown magic.
    """
    view = memoryview(buffer)
    if batch_size_at(view) == len(view):
        return [view]
    batches = []
    position = 0
    while (size := batch_size_at(view, position)) is not None:
        batches.append(view[position : position + size])
        position += size
    return batches


def parse_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """Return the header of the batch at `position`; the batch must be whole.

    Raises CORRUPT_MESSAGE for a batch of format v2 that is too short for its header, and
    INVALID_RECORD for older formats, which Kafka 4 does not accept.
    """
    if buffer[position + _MAGIC_OFFSET] != MAGIC_V2:
        raise ApiError(
            ErrorCode.INVALID_RECORD, "Produce requests are only allowed to contain record batches with magic version 2"
        )
    if len(buffer) - position < BATCH_OVERHEAD_BYTES:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"Record batch is smaller than the minimum overhead {BATCH_OVERHEAD_BYTES}"
        )
    header = _as_header(BatchHeader, _HEADER.unpack_from(buffer, position))
    if header.length < BATCH_OVERHEAD_BYTES - LOG_OVERHEAD_BYTES:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record batch size {header.size_bytes} is smaller than the minimum overhead {BATCH_OVERHEAD_BYTES}",
        )
    return header


def verify_crc(batch: memoryview, header: BatchHeader) -> None:
    """Raise CORRUPT_MESSAGE unless the CRC-32C of the whole batch matches its header."""
    computed = crc32c(batch[_ATTRIBUTES_OFFSET:])
    if computed != header.crc:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt (stored crc = {header.crc}, computed crc = {computed})"
        )


def validate_produce_records(records: bytes | memoryview, produce_version: int) -> None:
    """Check the records of one partition in a produce request: exactly one batch of format v2.

    Raises `ApiError`: INVALID_RECORD, CORRUPT_MESSAGE, or UNSUPPORTED_COMPRESSION_TYPE for zstd
    before version 7. Mirrors `ProduceRequest.validateRecords`.
    """
    size = batch_size_at(records)
    if size is None:
        raise ApiError(ErrorCode.INVALID_RECORD, "Produce requests must have at least one record batch per partition")
    header = parse_header(records)
    if produce_version < _ZSTD_MIN_PRODUCE_VERSION and header.codec is CompressionCodec.ZSTD:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {produce_version} are not allowed to use ZStandard",
        )
    if size != len(records) and batch_size_at(records, size) is not None:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            "Produce requests are only allowed to contain exactly one record batch per partition",
        )


def rebase(batch: memoryview, base_offset: int, leader_epoch: int) -> bytes:
    """Return a copy of the batch with another base offset and leader epoch, which the CRC does not cover."""
    prefix = _PREFIX.pack(base_offset, len(batch) - LOG_OVERHEAD_BYTES, leader_epoch)
    return b"".join((prefix, batch[_MAGIC_OFFSET:]))


def restamp(
    batch: memoryview,
    header: BatchHeader,
    base_offset: int,
    leader_epoch: int,
    *,
    log_append_time: bool,
    max_timestamp: int,
) -> bytes:
    """Return a copy of the batch with another offset, leader epoch, timestamp type and max timestamp."""
    attributes = header.attributes & ~LOG_APPEND_TIME_FLAG
    if log_append_time:
        attributes |= LOG_APPEND_TIME_FLAG
    stamped = header._replace(
        base_offset=base_offset, partition_leader_epoch=leader_epoch, attributes=attributes, max_timestamp=max_timestamp
    )
    return encode_batch(stamped, batch[BATCH_OVERHEAD_BYTES:])


def recompress(
    batch: memoryview,
    header: BatchHeader,
    codec: CompressionCodec,
    level: int | None = None,
    limit_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> bytes:
    """Return the batch with its records compressed with another codec; raises as `decompress`."""
    plain = decompress(header.codec, batch[BATCH_OVERHEAD_BYTES:], limit_bytes)
    attributes = header.attributes & ~CODEC_MASK | codec
    return encode_batch(header._replace(attributes=attributes), compress(codec, plain, level))


def encode_batch(header: BatchHeader, records: bytes | memoryview) -> bytes:
    """Return the batch of `header` and compressed `records`, with length and CRC filled in."""
    under_crc = _UNDER_CRC.pack(*header[5:])
    crc = crc32c(records, crc32c(under_crc))
    prefix = _PREFIX.pack(
        header.base_offset, BATCH_OVERHEAD_BYTES - LOG_OVERHEAD_BYTES + len(records), header.partition_leader_epoch
    )
    return b"".join((prefix, _MAGIC_AND_CRC.pack(header.magic, crc), under_crc, records))
