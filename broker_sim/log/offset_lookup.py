"""Offsets by time, for ListOffsets; mirrors `UnifiedLog.fetchOffsetByTimestamp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.log.append_info import TimestampAndOffset
from broker_sim.protocol.record_batch import NO_TIMESTAMP, BatchHeader
from broker_sim.protocol.records import iter_records
from broker_sim.protocol.special_values import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.log.leader_epoch_cache import LeaderEpochCache
    from broker_sim.log.local_log import LocalLog

    Search = Callable[[BatchHeader, bytes | memoryview, "RecordQuery"], tuple[int, int] | None]


class RecordQuery(NamedTuple):
    """The first record of a batch at this offset or after it, with this timestamp or a later one."""

    timestamp: int
    first_offset: int
    is_exact: bool = False
    """Whether only exactly this timestamp matches."""


def find_record(batch: bytes | memoryview, query: RecordQuery) -> tuple[int, int] | None:
    """Return the timestamp and offset of the matching record, or None. Raises `ApiError` as `iter_records`."""
    timestamp, first_offset, is_exact = query
    for record in iter_records(batch):
        if record.offset >= first_offset and (
            record.timestamp == timestamp if is_exact else record.timestamp >= timestamp
        ):
            return record.timestamp, record.offset
    return None


def search_at_once(_header: BatchHeader, batch: bytes | memoryview, query: RecordQuery) -> tuple[int, int] | None:
    """Return the result of `find_record`, however long it takes."""
    return find_record(batch, query)


def fetch_offset_by_timestamp(
    local_log: LocalLog,
    epochs: LeaderEpochCache,
    log_start_offset: int,
    timestamp: int,
    search: Search,
    from_offset: int = 0,
) -> TimestampAndOffset | None:
    """Return the first record at or after a time (ms), or the offset of a special time.

    Special times: -1 the log's end, -2 and -4 its start, -3 the record with the largest timestamp, -5 no record
    (there is no tiered storage). None if no record is that new. `search(header, batch, query)` returns the record
    of a batch; it is called for batches that may hold it and end at `from_offset` or later. Raises as `search`.
    """
    if timestamp in {EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP}:
        earliest = epochs.earliest_entry
        is_known = earliest is not None and earliest.start_offset <= log_start_offset
        epoch = earliest.epoch if earliest is not None and is_known else -1
        return TimestampAndOffset(NO_TIMESTAMP, log_start_offset, epoch)
    if timestamp == LATEST_TIMESTAMP:
        latest = epochs.latest_epoch
        return TimestampAndOffset(NO_TIMESTAMP, local_log.log_end_offset, -1 if latest is None else latest)
    if timestamp == LATEST_TIERED_TIMESTAMP:
        return TimestampAndOffset(NO_TIMESTAMP, -1, -1)
    if timestamp == MAX_TIMESTAMP:
        return _newest_record(local_log, search)
    for header, batch in local_log.first_of_timestamp(timestamp, max(log_start_offset, from_offset)):
        record = search(header, batch, RecordQuery(timestamp, log_start_offset))
        if record is not None:
            return _result(header, *record)
    return None


def _newest_record(local_log: LocalLog, search: Search) -> TimestampAndOffset | None:
    """Return the first record with the largest timestamp of the log, which is -1 when no record has a time."""
    newest = max(local_log.segments, key=lambda segment: segment.max_timestamp)
    timestamp = newest.max_timestamp
    place = next(newest.batches_since(timestamp, newest.base_offset), None)
    if place is None:  # the log is empty, or the batch was released and a newer one truncated
        return None
    header, batch = place
    if header.is_log_append_time:
        return _result(header, timestamp, header.base_offset)
    record = search(header, batch, RecordQuery(timestamp, header.base_offset, is_exact=True))
    return None if record is None else _result(header, *record)


def _result(header: BatchHeader, timestamp: int, offset: int) -> TimestampAndOffset:
    return TimestampAndOffset(timestamp, offset, max(header.partition_leader_epoch, -1))
