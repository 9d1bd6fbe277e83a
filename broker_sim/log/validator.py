"""The checks of a batch before it is appended; mirrors `LogValidator`.

The checks of the header (61 bytes) and of the CRC do no work per record. The records are read only
if the header is not enough: in a compacted topic (every record needs a key), with a limit on old
timestamps, and for a batch whose largest timestamp is too far in the future (the error lists the
records).

Deliberate differences: in all other cases the header's record count and max timestamp are trusted,
where Kafka compares them with the records; batches that a coordinator has just built in this process are
trusted to have keys and the right CRC; and, unlike in Kafka, reading a batch is bounded: by the number of
records that an uncompressed batch of `max.message.bytes` (at least 1 MB) could have, 16 times its bytes, and
the first 1000 invalid records.

Slow validations run in another thread before the append, see `LogValidator.effort`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.config.definition import MAX_ARRAY_BYTES
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.append_info import (
    AppendOrigin,
    OffsetsOutOfOrderError,
    RecordError,
    UnexpectedAppendOffsetError,
    record_validation_error,
)
from broker_sim.protocol.compression import MAX_DECOMPRESSED_BYTES, CompressionCodec
from broker_sim.protocol.record_batch import (
    ATTRIBUTES_LOW_BYTE,
    BATCH_OVERHEAD_BYTES,
    CODEC_MASK,
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    batch_size_at,
    parse_header,
    rebase,
    recompress,
    restamp,
    split_batches,
    verify_crc,
)
from broker_sim.protocol.records import Record, has_larger_record, iter_records, read_end_txn_marker, rebuild_batch
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.config import TopicConfig
    from broker_sim.metadata.topic_partition import TopicPartition

log = get_logger(__name__)

_CLIENT: Final = AppendOrigin.CLIENT
_BUILT_HERE: Final = AppendOrigin.BUILT_HERE
_MAX_LONG: Final = 2**63 - 1
_MAX_ERRORS = 1_000
_MIN_RECORD_BYTES = 7
_UNBOUNDED_BYTES = 1 << 20
"""Lower bound of `max.message.bytes` in the limits on reading a batch, in bytes."""
MAX_DECOMPRESSION_RATIO = 16
"""Maximum size of decompressed records, as a multiple of `max.message.bytes`."""
_QUICK_RECORDS = 1_000
_QUICK_PACKED_BYTES = 512
_QUICK_PLAIN_BYTES = 64 * 1024
_MAX_TIMESTAMP_OFFSET = 35
_RECORDS_COUNT_OFFSET = 57
_LOG_APPEND_TIME = "LogAppendTime"
_TARGET_CODECS: Final[Mapping[str, CompressionCodec | None]] = {
    "producer": None,
    "uncompressed": CompressionCodec.NONE,
    "gzip": CompressionCodec.GZIP,
    "snappy": CompressionCodec.SNAPPY,
    "lz4": CompressionCodec.LZ4,
    "zstd": CompressionCodec.ZSTD,
}


class ValidBatch:
    """A batch that passed the checks, and the timestamp for its header."""

    __slots__ = ("batch", "header", "log_append_time", "max_timestamp")

    def __init__(self, batch: memoryview, header: BatchHeader, max_timestamp: int, log_append_time: bool) -> None:
        self.batch = batch
        self.header = header
        self.max_timestamp = max_timestamp
        self.log_append_time = log_append_time

    def place(self, base_offset: int, leader_epoch: int) -> bytes:
        """Return a copy of the batch with that base offset and leader epoch."""
        header = self.header
        if self.max_timestamp == header.max_timestamp and self.log_append_time == (
            header.attributes & LOG_APPEND_TIME_FLAG != 0
        ):
            return rebase(self.batch, base_offset, leader_epoch)
        return restamp(
            self.batch,
            header,
            base_offset,
            leader_epoch,
            log_append_time=self.log_append_time,
            max_timestamp=self.max_timestamp,
        )


class ValidatedRecords:
    """Records of a client, and the result of their validation before the append."""

    __slots__ = ("batch", "result", "validator")

    def __init__(self, batch: memoryview, validator: LogValidator, result: ValidBatch | ApiError) -> None:
        self.batch = batch
        self.validator = validator
        self.result = result


Appendable = bytes | memoryview | ValidatedRecords
"""Records for a leader's append: the bytes of one batch, optionally with the result of their validation."""


def batch_of(records: Appendable) -> bytes | memoryview:
    """Return the bytes of the records."""
    return records.batch if isinstance(records, ValidatedRecords) else records


def reading_effort(attributes: int, records_count: int, size_bytes: int) -> float:
    """Return an estimate of the work to read and decompress a batch's records.

    A request with a sum above 1 would delay other requests.
    """
    quick_bytes = _QUICK_PACKED_BYTES if attributes & CODEC_MASK else _QUICK_PLAIN_BYTES
    return max(records_count / _QUICK_RECORDS, size_bytes / quick_bytes)


class LogValidator:
    """The checks that one topic's configuration requires. Any thread may use it."""

    __slots__ = (
        "_compacted",
        "_limits_old_timestamps",
        "_log_append_time",
        "_looks_into",
        "_max_message_bytes",
        "_max_plain_record_bytes",
        "_target_codec",
        "_target_level",
        "_timestamp_after_max_ms",
        "_timestamp_before_max_ms",
        "_topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, config: TopicConfig) -> None:
        self._topic_partition = topic_partition
        self._max_message_bytes = config.max_message_bytes
        limit_bytes = config.max_decompressed_message_bytes
        self._max_plain_record_bytes = None if limit_bytes == MAX_ARRAY_BYTES else limit_bytes
        self._compacted = config.is_compacted
        self._log_append_time = config.message_timestamp_type == _LOG_APPEND_TIME
        self._timestamp_before_max_ms = config.message_timestamp_before_max_ms
        self._timestamp_after_max_ms = config.message_timestamp_after_max_ms
        self._target_codec = _TARGET_CODECS[config.compression_type]
        self._target_level = {
            "gzip": config.compression_gzip_level,
            "lz4": config.compression_lz4_level,
            "zstd": config.compression_zstd_level,
        }.get(config.compression_type)
        self._limits_old_timestamps = config.message_timestamp_before_max_ms != _MAX_LONG
        self._looks_into = (
            self._compacted
            or self._limits_old_timestamps
            or self._target_codec is not None
            or self._max_plain_record_bytes is not None
        )

    def effort(self, records: memoryview, now_ms: int) -> float:
        """Return an estimate of the work to validate the records: 0 if the header is enough, else `reading_effort`."""
        if len(records) < BATCH_OVERHEAD_BYTES:
            return 0.0
        attributes = records[ATTRIBUTES_LOW_BYTE]
        if not self._looks_into and not attributes & LOG_APPEND_TIME_FLAG:
            times = records[_MAX_TIMESTAMP_OFFSET : _MAX_TIMESTAMP_OFFSET + 8]
            max_timestamp = int.from_bytes(times, "big", signed=True)
            if max_timestamp - now_ms <= self._timestamp_after_max_ms:
                return 0.0
        count = int.from_bytes(records[_RECORDS_COUNT_OFFSET:BATCH_OVERHEAD_BYTES], "big")
        return reading_effort(attributes, count, len(records))

    def validate_beside(self, records: memoryview, now_ms: int) -> ValidatedRecords:
        """Return a client's records with the result of `validate`."""
        result: ValidBatch | ApiError
        try:
            result = self.validate(records, now_ms, _CLIENT)
        except ApiError as error:
            # Its traceback would hold the decompressed records until the next garbage collection.
            error.__cause__ = error.__context__ = None
            result = error.with_traceback(None)
        except Exception as error:  # noqa: BLE001 - the client waits for a response
            partition = str(self._topic_partition)
            log.error("records_not_validated", partition=partition, error=repr(error))  # noqa: TRY400
            result = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return ValidatedRecords(records, self, result)

    def _take_validated(self, records: ValidatedRecords, now_ms: int) -> ValidBatch:
        result = records.result
        if records.validator is not self:  # the topic's configuration has changed since
            return self.validate(records.batch, now_ms, _CLIENT)
        if isinstance(result, ApiError):
            raise result
        if self._log_append_time:
            result.max_timestamp = now_ms
        return result

    def validate(self, records: Appendable, now_ms: int, origin: str) -> ValidBatch:
        """Return the batch if the leader may append it; its `max_timestamp` is that of the header to write.

        Raises `ApiError`: CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE,
        UNSUPPORTED_COMPRESSION_TYPE, in the order in which Kafka checks.
        """
        if isinstance(records, ValidatedRecords):
            return self._take_validated(records, now_ms)
        batch = _read_single_batch(records)
        header = parse_header(batch)
        if origin == _CLIENT and header.base_offset != 0:
            raise ApiError(
                ErrorCode.INVALID_RECORD,
                f"The baseOffset of the record batch in the append to {self._topic_partition} "
                f"should be 0, but it is {header.base_offset}",
            )
        if len(batch) > self._max_message_bytes:
            raise self._too_large(len(batch))
        is_trusted = origin == _BUILT_HERE
        if not is_trusted:
            verify_crc(batch, header)
        if header.attributes & CODEC_MASK:
            header.codec  # noqa: B018 - raises for an unknown codec
        if origin == _CLIENT:
            self._check_client_header(header)
        max_timestamp = header.max_timestamp
        self._check_plain_sizes(batch, header)
        if (
            self._limits_old_timestamps
            or (self._compacted and not is_trusted)
            or header.attributes & LOG_APPEND_TIME_FLAG
            or max_timestamp - now_ms > self._timestamp_after_max_ms
        ):
            self._check_bounds(header)
            max_timestamp = self._check_records(batch, header, now_ms)
        if self._target_codec is not None and not header.attributes & CONTROL_FLAG:
            batch, header = self._recompress(batch, header)
        if self._log_append_time:
            max_timestamp = now_ms
        return ValidBatch(batch, header, max_timestamp, self._log_append_time)

    def _recompress(self, batch: memoryview, header: BatchHeader) -> tuple[memoryview, BatchHeader]:
        assert self._target_codec is not None
        if header.codec is not self._target_codec:
            if header.is_log_append_time:
                # As in Kafka, which rebuilds the batch, its records get the batch's timestamp.
                batch, header = _with_times_of_records(batch, header, self._max_plain_bytes)
            batch = memoryview(recompress(batch, header, self._target_codec, self._target_level, self._max_plain_bytes))
            header = parse_header(batch)
            if len(batch) > self._max_message_bytes:
                raise self._too_large(len(batch))
        return batch, header

    def _too_large(self, size: int) -> ApiError:
        return ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {self._topic_partition} is {size} bytes "
            f"which exceeds the maximum configured value of {self._max_message_bytes}.",
        )

    def _check_plain_sizes(self, batch: memoryview, header: BatchHeader) -> None:
        """Raise INVALID_RECORD, without a message as in Kafka, for a decompressed record above the topic's limit."""
        max_record_bytes = self._max_plain_record_bytes
        if max_record_bytes is not None and header.attributes & CODEC_MASK:
            self._check_bounds(header)
            if has_larger_record(batch, max_record_bytes, self._max_plain_bytes):
                raise ApiError(ErrorCode.INVALID_RECORD)

    def _check_bounds(self, header: BatchHeader) -> None:
        """Raise MESSAGE_TOO_LARGE for more records than an uncompressed batch of the maximum size could have."""
        most = max(self._max_message_bytes, _UNBOUNDED_BYTES) // _MIN_RECORD_BYTES
        if header.records_count > most:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The record batch in the append to {self._topic_partition} has "
                f"{header.records_count} records, of which at most {most} are read",
            )

    @property
    def _max_plain_bytes(self) -> int:
        unbounded_bytes = max(self._max_message_bytes, _UNBOUNDED_BYTES)
        return min(unbounded_bytes * MAX_DECOMPRESSION_RATIO, MAX_DECOMPRESSED_BYTES)

    def _check_client_header(self, header: BatchHeader) -> None:
        count = header.records_count
        if header.last_offset_delta < 0:
            problem = f"Batch has an invalid offset range: [{header.base_offset}, {header.last_offset}]"
        elif count <= 0:
            problem = f"Invalid reported count for record batch: {count}"
        elif header.last_offset_delta + 1 != count:
            offsets = f"[{header.base_offset}, {header.last_offset}]"
            problem = f"Inconsistent batch offset range {offsets} and count of records {count}"
        elif header.attributes & CONTROL_FLAG:
            problem = "Clients are not allowed to write control records"
        elif header.producer_id != NO_PRODUCER_ID and header.base_sequence < 0:
            problem = (
                f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id}"
            )
        else:
            return
        raise ApiError(ErrorCode.INVALID_RECORD, f"{problem} in topic partition {self._topic_partition}")

    def _check_records(self, batch: memoryview, header: BatchHeader, now_ms: int) -> int:
        """Check every record; return the largest timestamp, or raise an error that lists the invalid records."""
        earliest = now_ms - self._timestamp_before_max_ms
        latest = now_ms + self._timestamp_after_max_ms
        max_timestamp = NO_TIMESTAMP
        errors: list[RecordError] = []
        bad_timestamp = False
        for index, record in enumerate(iter_records(batch, self._max_plain_bytes)):
            timestamp = record.timestamp
            max_timestamp = max(max_timestamp, timestamp)
            if self._compacted and record.key is None:
                problem = (
                    f"Compacted topic cannot accept message without key in topic partition {self._topic_partition}"
                )
            elif not self._log_append_time and timestamp != NO_TIMESTAMP:
                if earliest <= timestamp <= latest:
                    continue
                bad_timestamp = True
                problem = (
                    f"Timestamp {timestamp} of message with offset {record.offset} is out of "
                    f"range. The timestamp should be within [{earliest}, {latest}]"
                )
            elif header.is_log_append_time:
                bad_timestamp = True
                problem = (
                    f"Invalid timestamp type in message {self._shown(record, header)}. Producer "
                    "should not set timestamp type to LogAppendTime."
                )
            else:
                continue
            errors.append(RecordError(index, problem))
            if len(errors) == _MAX_ERRORS:
                break
        if errors:
            raise record_validation_error(errors, bad_timestamp)
        return max_timestamp

    def _shown(self, record: Record, header: BatchHeader) -> str:
        """Return the record as Kafka prints it: without keys and values for batches that stay compressed."""
        is_packed = header.attributes & CODEC_MASK
        is_partial = is_packed and self._target_codec in {None, header.codec}
        name, none = ("PartialDefaultRecord", -1) if is_partial else ("DefaultRecord", 0)
        key_size = none if record.key is None else len(record.key)
        value_size = none if record.value is None else len(record.value)
        return (
            f"{name}(offset={record.offset}, timestamp={record.timestamp}, "
            f"key={key_size} bytes, value={value_size} bytes)"
        )


def _with_times_of_records(batch: memoryview, header: BatchHeader, limit_bytes: int) -> tuple[memoryview, BatchHeader]:
    """Return the batch, uncompressed, with its maximum timestamp as the timestamp of each record."""
    records = list(iter_records(batch, limit_bytes))
    attributes = header.attributes & ~(LOG_APPEND_TIME_FLAG | CODEC_MASK)
    plain = memoryview(rebuild_batch(header._replace(attributes=attributes), records))
    return plain, parse_header(plain)


def _read_single_batch(records: bytes | memoryview) -> memoryview:
    """Return the single batch of `records`; an incomplete second batch is dropped.

    Raises INVALID_RECORD without a whole batch or with more than one, CORRUPT_MESSAGE for an
    impossible length.
    """
    size = batch_size_at(records)
    if size is None:
        raise ApiError(ErrorCode.INVALID_RECORD, "Record batch has no batches at all")
    view = memoryview(records)
    if size == len(view):
        return view
    if batch_size_at(records, size) is not None:
        raise ApiError(ErrorCode.INVALID_RECORD, "Compressed outer record has more than one batch")
    return view[:size]


def read_replicated_batches(
    buffers: bytes | memoryview | Iterable[bytes | memoryview],
    topic_partition: TopicPartition,
    log_end_offset: int,
    leader_epoch: int | None,
) -> list[tuple[BatchHeader, bytes]]:
    """Return the batches that a follower may append; see `PartitionLog.append_as_follower`.

    Raises `ApiError`: CORRUPT_MESSAGE, INVALID_RECORD for another format or a malformed transaction
    marker, `UnexpectedAppendOffsetError` for a batch that begins before the log's end,
    `OffsetsOutOfOrderError`.
    """
    batches: list[tuple[BatchHeader, bytes]] = []
    last_offset = -1
    for buffer in (buffers,) if isinstance(buffers, bytes | memoryview) else buffers:
        for view in split_batches(buffer):
            header = parse_header(view)
            if leader_epoch is not None and header.partition_leader_epoch > leader_epoch:
                return _checked_start(batches, topic_partition, log_end_offset)
            verify_crc(view, header)
            offset_before, last_offset = last_offset, header.last_offset
            if last_offset <= offset_before:
                raise OffsetsOutOfOrderError(
                    f"Out of order offsets found in append to {topic_partition}: {last_offset} after {offset_before}"
                )
            if header.attributes & CONTROL_FLAG and header.records_count and header.producer_id != NO_PRODUCER_ID:
                read_end_txn_marker(view, header)  # raises if the marker could not be applied later
            is_whole = isinstance(buffer, bytes) and len(view) == len(buffer)
            batches.append((header, buffer if is_whole else bytes(view)))  # type: ignore[arg-type]  # bytes, if whole
    return _checked_start(batches, topic_partition, log_end_offset)


def _checked_start(
    batches: list[tuple[BatchHeader, bytes]], topic_partition: TopicPartition, log_end_offset: int
) -> list[tuple[BatchHeader, bytes]]:
    """Return the batches. Raises `UnexpectedAppendOffsetError` if they begin before the log's end."""
    if batches and batches[0][0].base_offset < log_end_offset:
        first_offset, last_offset = batches[0][0].base_offset, batches[-1][0].last_offset
        raise UnexpectedAppendOffsetError(
            f"Unexpected offset in append to {topic_partition}. First offset {first_offset} is "
            f"less than the next offset {log_end_offset}. Last offset in append: {last_offset}.",
            first_offset,
            last_offset,
        )
    return batches
