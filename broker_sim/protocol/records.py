"""The records inside a batch; mirrors `DefaultRecord` and `MemoryRecordsBuilder`.

Used for look-ups by timestamp, compacted topics and their cleaner, transaction markers, raw clients and
tests; produce and fetch do not read records.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.compression import MAX_DECOMPRESSED_BYTES, CompressionCodec, compress, decompress_in_pieces
from broker_sim.protocol.record_batch import (
    BATCH_OVERHEAD_BYTES,
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    MAGIC_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    encode_batch,
    parse_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CACHED_VARINTS = 4_096
CACHED_MARKERS = 1_024
MAX_MARKER_BYTES = 128
MAX_VARINT_BYTES = 10
_CONTROL_KEY = Struct(">hh")
_END_TXN_VALUE = Struct(">hi")
_NO_KEY = b"\1"
_ABORT = 0
_COMMIT = 1
_NO_HEADER = BatchHeader._make([0] * len(BatchHeader._fields))


class Record(NamedTuple):
    """One record; `offset` and `timestamp` are absolute, the timestamp in ms since the epoch.

    In a record to be built, an offset below zero means the offset after the previous record.
    """

    value: bytes | None
    key: bytes | None = None
    timestamp: int = NO_TIMESTAMP
    offset: int = -1
    headers: tuple[tuple[str, bytes | None], ...] = ()


class EndTxnMarker(NamedTuple):
    """The content of a control batch that ends a transaction."""

    is_commit: bool
    coordinator_epoch: int


def build_batch(
    records: Iterable[Record | bytes],
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    codec: CompressionCodec = CompressionCodec.NONE,
    log_append_time: bool = False,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """Return a batch of records, or of plain values, with offsets from `base_offset` on."""
    records_in_order = list(records)
    values = [value for value in records_in_order if isinstance(value, bytes)]
    if len(values) == len(records_in_order):
        packed = _pack_values(values)
        last_offset_delta = len(values) - 1
        base_timestamp = max_timestamp = NO_TIMESTAMP
    else:
        items = [r if isinstance(r, Record) else Record(r) for r in records_in_order]
        base_timestamp = items[0].timestamp
        packed, last_offset_delta = _pack(items, base_offset, base_timestamp)
        max_timestamp = max([item.timestamp for item in items])
    attributes = (
        codec
        | (LOG_APPEND_TIME_FLAG if log_append_time else 0)
        | (TRANSACTIONAL_FLAG if is_transactional else 0)
        | (CONTROL_FLAG if is_control else 0)
    )
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        partition_leader_epoch=partition_leader_epoch,
        magic=MAGIC_V2,
        crc=0,
        attributes=attributes,
        last_offset_delta=max(last_offset_delta, 0),
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(records_in_order),
    )
    return encode_batch(header, compress(codec, packed) if codec else packed)


def rebuild_batch(header: BatchHeader, records: Sequence[Record], delete_horizon_ms: int | None = None) -> bytes:
    """Return the batch of `header` with only these of its records, each at its offset.

    The batch keeps its codec and its range of offsets, and so of sequences. Without records only a
    header remains. `delete_horizon_ms` becomes `BatchHeader.delete_horizon_ms`. Mirrors
    `MemoryRecords.filterTo`.
    """
    attributes = header.attributes & ~DELETE_HORIZON_FLAG
    if not records:
        empty = header._replace(attributes=attributes & ~CODEC_MASK, base_timestamp=NO_TIMESTAMP, records_count=0)
        return encode_batch(empty, b"")
    base_timestamp = records[0].timestamp
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_FLAG
        base_timestamp = delete_horizon_ms
    packed, _ = _pack(records, header.base_offset, base_timestamp)
    header_of_rest = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        records_count=len(records),
    )
    return encode_batch(header_of_rest, compress(header.codec, packed))


def build_end_txn_marker(
    *, producer_id: int, producer_epoch: int, is_commit: bool, timestamp: int, coordinator_epoch: int = 0
) -> bytes:
    """Return the control batch with which a coordinator commits or aborts a transaction."""
    header = BatchHeader(
        base_offset=0,
        length=0,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        magic=MAGIC_V2,
        crc=0,
        attributes=TRANSACTIONAL_FLAG | CONTROL_FLAG,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        records_count=1,
    )
    return encode_batch(header, _pack_marker(is_commit, coordinator_epoch))


@lru_cache(CACHED_MARKERS)
def _pack_marker(is_commit: bool, coordinator_epoch: int) -> bytes:
    """Return the single record of a marker, which is the same for all transactions of a coordinator."""
    marker = Record(
        key=_CONTROL_KEY.pack(0, _COMMIT if is_commit else _ABORT),
        value=_END_TXN_VALUE.pack(0, coordinator_epoch),
        timestamp=0,
    )
    return _pack([marker], base_offset=0, base_timestamp=0)[0]


def read_end_txn_marker(batch: bytes | memoryview, header: BatchHeader | None = None) -> EndTxnMarker:
    """Return the content of a control batch; pass its `header` if parsed. Raises `ApiError` INVALID_RECORD."""
    if header is None:
        header = parse_header(batch)
    if not header.attributes & CODEC_MASK and header.size_bytes <= MAX_MARKER_BYTES:
        data = bytes(memoryview(batch)[BATCH_OVERHEAD_BYTES : header.size_bytes])
        return _unpack_marker(data, header.records_count)
    return _marker_of(next(iter_records(batch), Record(None)))


@lru_cache(CACHED_MARKERS)
def _unpack_marker(data: bytes, records_count: int) -> EndTxnMarker:
    """Read a marker's record; cached, because all partitions of a transaction and their replicas have the same one."""
    if records_count < 1:
        return _marker_of(Record(None))
    return _marker_of(_record_at(data, 0, _NO_HEADER)[0])


def _marker_of(record: Record) -> EndTxnMarker:
    key, value = record.key or b"", record.value or b""
    if len(key) < _CONTROL_KEY.size or len(value) < _END_TXN_VALUE.size:
        raise _invalid("a control record too short for the end of a transaction")
    _version, control_type = _CONTROL_KEY.unpack_from(key)
    if control_type not in {_ABORT, _COMMIT}:
        raise _invalid(f"a control record of type {control_type}")
    _version, coordinator_epoch = _END_TXN_VALUE.unpack_from(value)
    return EndTxnMarker(control_type == _COMMIT, coordinator_epoch)


def record_size(record: Record, header: BatchHeader | None = None) -> int:
    """Return the size of a record in its batch, in bytes; without `header` the timestamp delta is 0."""
    base_offset, base_timestamp = (
        (0, record.timestamp) if header is None else (header.base_offset, header.base_timestamp)
    )
    return len(_pack([record], base_offset, base_timestamp)[0])


def iter_records(batch: bytes | memoryview, limit_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """Yield the records of one whole batch, decompressed, with absolute offsets and timestamps.

    Only as much is decompressed as the consumed records need. Raises `ApiError`
    INVALID_RECORD for records that contradict the header, and as `decompress`.
    """
    header = parse_header(batch)
    packed = memoryview(batch)[BATCH_OVERHEAD_BYTES : header.size_bytes]
    pieces = decompress_in_pieces(header.codec, packed, limit_bytes)
    data, position = next(pieces, b""), 0
    has_more = header.codec is not CompressionCodec.NONE
    for _ in range(header.records_count):
        while has_more and not _has_whole_record(data, position):
            piece = next(pieces, None)
            if piece is None:
                has_more = False
            else:
                data, position = data[position:] + piece, 0
        record, position = _record_at(data, position, header)
        yield record
    if position != len(data) or any(pieces):
        raise _invalid("more records than in the header")


def has_larger_record(
    batch: bytes | memoryview, max_record_bytes: int, limit_bytes: int = MAX_DECOMPRESSED_BYTES
) -> bool:
    """Return whether any record of the compressed batch, without its size field, exceeds `max_record_bytes`.

    Decompression stops after the first such record. Raises `ApiError` as `iter_records`.
    """
    header = parse_header(batch)
    packed = memoryview(batch)[BATCH_OVERHEAD_BYTES : header.size_bytes]
    data, position = b"", 0
    for piece in decompress_in_pieces(header.codec, packed, limit_bytes):
        data, position = data[position:] + piece, 0
        while position + MAX_VARINT_BYTES <= len(data):
            size, start = _read_varint(data, position)
            if size > max_record_bytes:
                return True
            if size < 0 or start + size > len(data):
                break
            position = start + size
    return False


def _has_whole_record(data: bytes, position: int) -> bool:
    """Return whether the next record is complete, or invalid whatever bytes follow."""
    if position + MAX_VARINT_BYTES > len(data):
        return False
    size, position = _read_varint(data, position)
    return position + size <= len(data)


def _record_at(data: bytes, position: int, header: BatchHeader) -> tuple[Record, int]:
    """Return the record at the position, and the position of the next one."""
    size, position = _read_varint(data, position)
    end = position + size
    if size < 0 or end > len(data):
        raise _invalid("a record exceeds the batch")
    record = _decode_record(data, position, end, header)
    if header.is_log_append_time:
        record = record._replace(timestamp=header.max_timestamp)
    return record, end


def _invalid(what: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, f"Invalid record batch: {what}")


def _pack(items: Sequence[Record], base_offset: int, base_timestamp: int) -> tuple[bytes, int]:
    """Return the encoded records, and the distance of the last offset from `base_offset`."""
    packed = bytearray()
    offset = base_offset - 1
    for item in items:
        offset = item.offset if item.offset >= 0 else offset + 1
        body = _encode_record(item, offset - base_offset, item.timestamp - base_timestamp)
        packed += _varint(len(body))
        packed += body
    return bytes(packed), offset - base_offset


def _pack_values(values: Sequence[bytes]) -> bytes:
    """Return encoded records of plain values; a fast path, because a trace topic gets many thousands per second."""
    parts: list[bytes] = []
    for number, value in enumerate(values):
        offset_delta, value_size = _varint(number), _varint(len(value))
        size = 4 + len(offset_delta) + len(value_size) + len(value)
        # No attributes, a timestamp delta of 0, no key, no headers.
        parts += (_varint(size), b"\0\0", offset_delta, _NO_KEY, value_size, value, b"\0")
    return b"".join(parts)


def _encode_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    body = bytearray(b"\x00")
    body += _varint(timestamp_delta)
    body += _varint(offset_delta)
    _put_bytes(body, record.key)
    _put_bytes(body, record.value)
    body += _varint(len(record.headers))
    for name, value in record.headers:
        _put_bytes(body, name.encode())
        _put_bytes(body, value)
    return bytes(body)


def _decode_record(data: bytes, position: int, end: int, header: BatchHeader) -> Record:
    timestamp_delta, position = _read_varint(data, position + 1)
    offset_delta, position = _read_varint(data, position)
    key, position = _read_bytes(data, position, end)
    value, position = _read_bytes(data, position, end)
    count, position = _read_varint(data, position)
    if not 0 <= count <= end - position:
        raise _invalid(f"{count} headers in a record")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(data, position, end)
        if name is None:
            raise _invalid("a header without a key")
        header_value, position = _read_bytes(data, position, end)
        headers.append((name.decode(errors="replace"), header_value))
    if position != end:
        raise _invalid("a record's size does not match its fields")
    return Record(
        value, key, header.base_timestamp + timestamp_delta, header.base_offset + offset_delta, tuple(headers)
    )


@lru_cache(CACHED_VARINTS)
def _varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    zigzag = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise _invalid("a varint is too long")
        byte = data[position]
        position += 1
        zigzag |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (zigzag >> 1) ^ -(zigzag & 1), position
        shift += 7


def _put_bytes(body: bytearray, value: bytes | None) -> None:
    if value is None:
        body += _varint(-1)
    else:
        body += _varint(len(value))
        body += value


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = _read_varint(data, position)
    if size < 0:
        return None, position
    if position + size > end:
        raise _invalid("a field exceeds its record")
    return data[position : position + size], position + size
