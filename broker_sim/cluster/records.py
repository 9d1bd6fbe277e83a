"""The verbs `produce`, `produce_many` and `records`: append and read records of a topic without a client."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.cluster.nodes.nodes import leaders_log
from broker_sim.control.json_lines import parse_json_lines
from broker_sim.errors import ApiError, ClusterTimeoutError, ErrorCode, UnknownPartitionError, WrongStateError
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import NO_TIMESTAMP, parse_header, split_batches
from broker_sim.protocol.records import Record, build_batch, iter_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.log import AbortedTxn, PartitionLog
    from broker_sim.protocol.record_batch import BatchHeader
    from broker_sim.replica import ProducePartitionStatus

TIMEOUT_MS = 30_000
"""Timeout of an append, the default of producers' `request.timeout.ms`."""
LEADER_GRACE_S = 5
"""Seconds to wait beyond the timeout, at which a running leader has answered; a paused one never does."""
READ_BYTES = 1_048_576
"""Number of bytes to read from a log at once; at least one batch is read."""
KEPT_BATCH_BYTES: Final = 1_024
KEPT_BATCHES: Final = 1_024
"""Number of uncompressed batches of at most `KEPT_BATCH_BYTES` whose decoded records are cached."""
BATCH_BYTES: Final = 500_000
"""Largest estimated size of a batch, half of the default of `max.message.bytes`."""
RECORD_OVERHEAD_BYTES: Final = 40
FIELDS: Final = {"topic", "partition", "offset", "timestamp_ms", "key", "value", "headers"}
"""Fields of a record in JSON; `topic` and `offset` are accepted, as `records` returns them, without effect."""
_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One record of a topic; the timestamp is in ms since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values; bytes that are not UTF-8 text become `{"base64": ...}`."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp_ms": self.timestamp_ms,
            "key": _plain(self.key),
            "value": _plain(self.value),
            "headers": [[name, _plain(value)] for name, value in self.headers],
        }


class TopicRecords(tuple[TopicRecord, ...]):
    """The records of a topic, partition by partition, in the order of their offsets."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"records": [record.to_json() for record in self]}


def readable_records(nodes: Nodes, topic: str) -> TopicRecords:
    """Return the records that read_committed consumers get."""
    count = _partition_count(nodes, topic)
    return TopicRecords(record for number in range(count) for record in _read(nodes, TopicPartition(topic, number)))


def _read(nodes: Nodes, topic_partition: TopicPartition) -> Iterator[TopicRecord]:
    log = _leader(nodes, topic_partition).replica_manager.get_partition(topic_partition).log
    for header, batch in _readable_batches(log, log.log_start_offset):
        for record in _records_of(topic_partition, header, batch):
            if record.offset >= log.log_start_offset:
                yield record


def _readable_batches(log: PartitionLog, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield the batches that read_committed consumers get from this offset on."""
    end_offset = log.last_stable_offset
    aborted = log.aborted_transactions(offset, log.size_bytes)
    while offset < end_offset:
        read = log.read(offset, READ_BYTES, upper_bound_offset=end_offset, min_one_message=True)
        batches = split_batches(b"".join(read.records))
        if not batches:
            return
        for batch in batches:
            header = parse_header(batch)
            if not header.is_control and not _is_aborted(header, aborted):
                yield header, batch
            offset = header.last_offset + 1


def has_unread_records(nodes: Nodes, offsets: Iterable[tuple[TopicPartition, int | None]], more_than: int) -> bool:
    """Whether consumers at these offsets (None: the log's start) have more than that number of records to read."""
    unread = 0
    for topic_partition, offset in offsets:
        log = leaders_log(nodes, topic_partition)
        if log is not None and unread <= more_than:
            unread += _unread_count(log, log.log_start_offset if offset is None else offset, more_than - unread)
    return unread > more_than


def _unread_count(log: PartitionLog, offset: int, stop_above: int) -> int:
    """Return the number of records that consumers at this offset still get; counting ends above `stop_above`.

    Markers of transactions and aborted records do not count; records of open transactions do, because they may be
    committed. Consumers that read uncommitted records get aborted ones too.
    """
    offset = max(offset, log.log_start_offset)
    unread = log.high_watermark - max(offset, log.last_stable_offset)
    for header, _ in _readable_batches(log, offset):
        if unread > stop_above:
            break
        unread += header.last_offset + 1 - max(header.base_offset, offset)
    return unread


def _records_of(topic_partition: TopicPartition, header: BatchHeader, batch: memoryview) -> Iterable[TopicRecord]:
    """Return the records of a batch; those of small ones are cached, because tests read them repeatedly."""
    if len(batch) <= KEPT_BATCH_BYTES and header.codec is CompressionCodec.NONE:
        return _kept_records_of(topic_partition, bytes(batch))
    return (_topic_record(topic_partition, record) for record in iter_records(batch))


@lru_cache(maxsize=KEPT_BATCHES)
def _kept_records_of(topic_partition: TopicPartition, batch: bytes) -> Sequence[TopicRecord]:
    return tuple(_topic_record(topic_partition, record) for record in iter_records(batch))


def _is_aborted(header: BatchHeader, aborted: Sequence[AbortedTxn]) -> bool:
    return header.is_transactional and any(
        transaction.producer_id == header.producer_id
        and transaction.first_offset <= header.base_offset <= transaction.last_offset
        for transaction in aborted
    )


class _Unplaced(NamedTuple):
    """A record to append, and its partition (None: chosen by the key)."""

    record: Record
    partition: int | None


async def append_record(
    nodes: Nodes,
    topic: str,
    value: str | bytes | None,
    *,
    key: str | bytes | None,
    partition: int | None,
    headers: object,
    timestamp_ms: int | None,
) -> TopicRecord:
    """Append a record with acks=all at the partition's leader. Raises as `Verbs.produce`."""
    record = Record(_bytes("value", value), _bytes("key", key), _timestamp(timestamp_ms), headers=_headers(headers))
    (appended,) = await _append_all(nodes, topic, [_Unplaced(record, partition)])
    return appended


async def append_records(nodes: Nodes, topic: str, records: object) -> TopicRecords:
    """Append records from mappings or from a file of JSON lines. Raises as `Verbs.produce_many`."""
    rows = _of_file(records) if isinstance(records, str | Path) else records
    if not isinstance(rows, Iterable) or isinstance(rows, Mapping):
        text = f"records must be a list of objects, or the path of a file of JSON lines, not {records!r}"
        raise ValueError(text)  # noqa: TRY004 - also for the body of a request
    unplaced = [_parse_record(number, fields) for number, fields in enumerate(rows, 1)]
    return TopicRecords(await _append_all(nodes, topic, unplaced))


def _of_file(path: str | Path) -> list[Any]:
    with Path(path).open(encoding="utf-8") as lines:
        return parse_json_lines(lines)


def _parse_record(number: int, fields: object) -> _Unplaced:
    """Return a record from its fields, as `TopicRecord.to_json` has them. Raises ValueError."""
    if not isinstance(fields, Mapping):
        text = f"record {number} must be an object such as {{'key': 'k', 'value': 'v'}}, not {fields!r}"
        raise ValueError(text)  # noqa: TRY004 - also for the body of a request
    if fields.keys() - FIELDS or "value" not in fields:
        raise ValueError(f"record {number} has the fields {sorted(fields)}; required: value, allowed: {sorted(FIELDS)}")
    partition = fields.get("partition")
    if partition is not None and type(partition) is not int:
        raise ValueError(f"record {number}: partition must be a number, not {partition!r}")
    try:
        value, key, headers = _content(fields["value"]), _content(fields.get("key")), _headers(fields.get("headers"))
        record = Record(value, key, _timestamp(fields.get("timestamp_ms")), headers=headers)
    except ValueError as error:
        raise ValueError(f"record {number}: {error}") from error
    return _Unplaced(record, partition)


def _content(value: object) -> bytes | None:
    """Return the bytes of a text, of `{"base64": ...}`, or of any other value as JSON text."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Mapping) and value.keys() == {"base64"}:
        return base64.b64decode(str(value["base64"]), validate=True)
    return json.dumps(value, ensure_ascii=False).encode()


def _headers(headers: object) -> tuple[tuple[str, bytes | None], ...]:
    """Return headers from a mapping, or from pairs. Raises ValueError."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    try:
        return tuple((str(name), _content(value)) for name, value in pairs)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"headers must be a mapping of texts, or pairs of a name and a text, not {headers!r}"
        ) from error


def _timestamp(timestamp_ms: object) -> int:
    """Return a timestamp, `NO_TIMESTAMP` for None. Raises ValueError."""
    if timestamp_ms is None:
        return NO_TIMESTAMP
    if type(timestamp_ms) is not int or not 0 <= timestamp_ms < 1 << 63:
        raise ValueError(f"timestamp_ms must be a number of milliseconds since the epoch, not {timestamp_ms!r}")
    return timestamp_ms


async def _append_all(nodes: Nodes, topic: str, records: Iterable[_Unplaced]) -> list[TopicRecord]:
    """Append records in batches with acks=all; return them in their order."""
    count = _partition_count(nodes, topic)
    by_partition: dict[int, list[tuple[int, Record]]] = {}
    for place, (record, partition) in enumerate(records):
        number = partition
        if number is None:
            number = 0 if record.key is None else partition_of_key(record.key, count)
        if number not in range(count):
            raise UnknownPartitionError(topic, number, range(count))
        by_partition.setdefault(number, []).append((place, record))
    appended: dict[int, TopicRecord] = {}
    for number, placed in by_partition.items():
        topic_partition = TopicPartition(topic, number)
        for batch in _batches(placed):
            stored = await _append_batch(nodes, topic_partition, [record for _, record in batch])
            appended.update(zip((place for place, _ in batch), stored, strict=True))
    return [appended[place] for place in sorted(appended)]


def _batches(records: Iterable[tuple[int, Record]]) -> Iterator[list[tuple[int, Record]]]:
    """Yield the records in batches of at most `BATCH_BYTES`, or of one record that is larger."""
    batch: list[tuple[int, Record]] = []
    size = 0
    for place, record in records:
        parts = (record.key, record.value, *(part for name, value in record.headers for part in (name, value)))
        own_size = RECORD_OVERHEAD_BYTES + sum(len(part) for part in parts if part is not None)
        if batch and size + own_size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append((place, record))
        size += own_size
    if batch:
        yield batch


async def _append_batch(nodes: Nodes, topic_partition: TopicPartition, records: list[Record]) -> list[TopicRecord]:
    broker = _leader(nodes, topic_partition)
    now_ms = nodes.node(broker.broker_id).clock.wall_clock_ms()
    records = [each if each.timestamp != NO_TIMESTAMP else each._replace(timestamp=now_ms) for each in records]
    status = await _append(nodes, broker, topic_partition, build_batch(records))
    if status.error_code is not ErrorCode.NONE:
        raise ApiError(status.error_code, status.error_message or "")
    if status.log_append_time_ms >= 0:
        records = [each._replace(timestamp=status.log_append_time_ms) for each in records]
    return [
        _topic_record(topic_partition, each._replace(offset=status.base_offset + delta))
        for delta, each in enumerate(records)
    ]


async def _append(
    nodes: Nodes, broker: Broker, topic_partition: TopicPartition, batch: bytes
) -> ProducePartitionStatus:
    answer: asyncio.Future[ProducePartitionStatus] = asyncio.get_running_loop().create_future()

    def take(status: ProducePartitionStatus) -> None:
        if not answer.done():
            answer.set_result(status)

    process = nodes.node(broker.broker_id).process
    assert process is not None
    process.deliver(broker.append_acked, topic_partition, batch, TIMEOUT_MS, take)
    try:
        async with asyncio.timeout(TIMEOUT_MS / 1_000 + LEADER_GRACE_S):
            return await answer
    except TimeoutError:
        raise ClusterTimeoutError(
            f"broker {broker.broker_id}, the leader of {topic_partition.topic}-"
            f"{topic_partition.partition}, did not answer; look at the cluster's status"
        ) from None


def _partition_count(nodes: Nodes, topic: str) -> int:
    topics = nodes.controller.image.topics
    if topic not in topics:
        raise UnknownPartitionError(topic, None, topics)
    return len(topics[topic].partitions)


def _leader(nodes: Nodes, topic_partition: TopicPartition) -> Broker:
    state = nodes.controller.image.partition(topic_partition)
    broker = None if state is None else nodes.brokers.get(state.leader)
    if broker is None:
        topic, number = topic_partition
        raise WrongStateError(f"{topic}-{number} has no live leader; start its brokers")
    return broker


def _topic_record(topic_partition: TopicPartition, record: Record) -> TopicRecord:
    return TopicRecord(*topic_partition, record.offset, record.timestamp, record.key, record.value, record.headers)


def _bytes(name: str, value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"{name} must be text, bytes or None, not {value!r}")


def _plain(value: bytes | None) -> str | dict[str, str] | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def partition_of_key(key: bytes, count: int) -> int:
    """Return the partition of a key, as `BuiltInPartitioner.partitionForKey` does (murmur2)."""
    return (_murmur2(key) & 0x7FFFFFFF) % count


def _murmur2(data: bytes) -> int:
    """Return the hash as an unsigned number; mirrors `org.apache.kafka.common.utils.Utils.murmur2`."""
    hashed = _SEED ^ len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        hashed = hashed * _MULTIPLIER & _MASK ^ word
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    return hashed ^ hashed >> 15
