"""Offsets by time, for ListOffsets; mirrors `UnifiedLog.fetchOffsetByTimestamp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.log.append_info import TimestampAndOffset
from broker_sim.protocol.record_batch import NO_TIMESTAMP, BatchHeader
from broker_sim.protocol.records import iter_records

if TYPE_CHECKING:
    from broker_sim.log.leader_epoch_cache import LeaderEpochCache
    from broker_sim.log.local_log import LocalLog

__all__ = [
    "EARLIEST_LOCAL_TIMESTAMP",
    "EARLIEST_TIMESTAMP",
    "LATEST_TIERED_TIMESTAMP",
    "LATEST_TIMESTAMP",
    "MAX_TIMESTAMP",
    "fetch_offset_by_timestamp",
]

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5


def fetch_offset_by_timestamp(
    local_log: LocalLog, epochs: LeaderEpochCache, log_start_offset: int, timestamp: int
) -> TimestampAndOffset | None:
    """Return the first record at or after a time (ms), or what a special time stands for.

    -1 the log's end, -2 and -4 its start, -3 the record with the largest timestamp, -5 nothing (there
    are no tiers). None if no record is that new. Only the batch that may hold the record is
    decompressed; raises `ApiError` as `iter_records`.
    """
    if timestamp in {EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP}:
        earliest = epochs.earliest_entry
        is_known = earliest is not None and earliest.start_offset <= log_start_offset
        epoch = earliest.epoch if earliest is not None and is_known else -1
        return TimestampAndOffset(NO_TIMESTAMP, log_start_offset, epoch)
    if timestamp == LATEST_TIMESTAMP:
        latest = epochs.latest_epoch
        return TimestampAndOffset(
            NO_TIMESTAMP, local_log.log_end_offset, -1 if latest is None else latest
        )
    if timestamp == LATEST_TIERED_TIMESTAMP:
        return TimestampAndOffset(NO_TIMESTAMP, -1, -1)
    if timestamp == MAX_TIMESTAMP:
        return _newest_record(local_log)
    for header, batch in local_log.first_of_timestamp(timestamp, log_start_offset):
        for record in iter_records(batch):
            if record.timestamp >= timestamp and record.offset >= log_start_offset:
                return _found(header, record.timestamp, record.offset)
    return None


def _newest_record(local_log: LocalLog) -> TimestampAndOffset | None:
    """Return the first record with the largest timestamp of the log."""
    newest = max(local_log.segments, key=lambda segment: segment.max_timestamp)
    timestamp = newest.max_timestamp
    if timestamp == NO_TIMESTAMP:
        return None
    found = next(newest.batches_since(timestamp, newest.base_offset), None)
    if found is None:  # it was deleted and released, and what made it the newest was truncated
        return None
    header, batch = found
    if header.is_log_append_time:
        return _found(header, timestamp, header.base_offset)
    for record in iter_records(batch):
        if record.timestamp == timestamp:
            return _found(header, timestamp, record.offset)
    return None


def _found(header: BatchHeader, timestamp: int, offset: int) -> TimestampAndOffset:
    return TimestampAndOffset(timestamp, offset, max(header.partition_leader_epoch, -1))
