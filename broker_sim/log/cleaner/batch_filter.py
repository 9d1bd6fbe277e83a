"""What stays of a batch; mirrors the `RecordFilter` of `Cleaner.cleanInto` and `MemoryRecords.filterTo`.

A record stays

    A  if it is above the last mapped offset
    B  if it is the last one of its key, and has a value
    C  if it is the last one of its key, a tombstone, and its delete horizon is not reached

and goes with its batch if its transaction was aborted. The first cleaning that meets a tombstone, or the
marker of a transaction without records, writes the horizon into the batch: `delete.retention.ms` from
then on (KIP-534).

A batch without records stays, as a header, if it has the last sequence or epoch of a producer that is
still known, or if it is the last one of the cleaned part, so that the log's offsets stay known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.protocol.record_batch import NO_PRODUCER_ID
from broker_sim.protocol.records import Record, iter_records, rebuild_batch

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker_sim.log.cleaner.cleaned_transactions import CleanedTransactionMetadata
    from broker_sim.log.cleaner.offset_map import OffsetMap
    from broker_sim.log.cleaner.stats import CleanerStats
    from broker_sim.log.partition_log import PartitionLog
    from broker_sim.protocol.record_batch import BatchHeader

RECORDS_PER_UNIT: Final = 128
"""After so many records of a batch the work may be interrupted."""


class Work(NamedTuple):
    """A piece of work that has been done."""

    records: int
    size_bytes: int


class BatchFilter:
    """Filters the batches of one cleaning, in the order of the log."""

    def __init__(
        self,
        log: PartitionLog,
        offsets: OffsetMap,
        transactions: CleanedTransactionMetadata,
        upper_bound_offset: int,
        stats: CleanerStats,
    ) -> None:
        """`upper_bound_offset` is where the cleaned part ends."""
        self._producers = log.producer_state.active_producers
        self._now_ms = log.clock.wall_clock_ms()
        self._delete_retention_ms = log.config.delete_retention_ms
        self._offsets = offsets
        self._transactions = transactions
        self._upper_bound_offset = upper_bound_offset
        self._stats = stats

    def filter(self, header: BatchHeader, batch: bytes) -> Generator[Work, None, bytes | None]:
        """Return the batch, a smaller one of the same offsets, or None where nothing stays."""
        if header.is_control:
            without_batches = self._transactions.on_control_batch_read(header, batch)
            horizon_ms = header.delete_horizon_ms
            is_discarded = without_batches and horizon_ms is not None and horizon_ms <= self._now_ms
        else:
            without_batches = False
            is_discarded = self._transactions.on_batch_read(header)
        stays_empty = self._stays_empty(header)
        if is_discarded and not stays_empty:
            return None
        self._stats.messages_read += header.records_count
        if is_discarded or not header.records_count:
            return rebuild_batch(header, ()) if stays_empty else None
        if header.is_control:
            return self._marker(header, batch, without_batches=without_batches)
        retained = yield from self._retained(header, batch)
        if not retained:
            return rebuild_batch(header, ()) if stays_empty else None
        self._stats.messages_written += len(retained)
        needs_horizon = header.delete_horizon_ms is None and any(record.value is None for record in retained)
        if len(retained) == header.records_count and not needs_horizon:
            return batch
        return rebuild_batch(header, retained, self._horizon_ms(header, needs_it=needs_horizon))

    def _marker(self, header: BatchHeader, batch: bytes, *, without_batches: bool) -> bytes:
        """Return the marker, with a delete horizon from when its transaction has no records."""
        self._stats.messages_written += header.records_count
        if not without_batches or header.delete_horizon_ms is not None:
            return batch
        return rebuild_batch(header, list(iter_records(batch)), self._horizon_ms(header, needs_it=True))

    def _horizon_ms(self, header: BatchHeader, *, needs_it: bool) -> int | None:
        return self._now_ms + self._delete_retention_ms if needs_it else header.delete_horizon_ms

    def _stays_empty(self, header: BatchHeader) -> bool:
        if header.last_offset + 1 == self._upper_bound_offset:
            return True
        if header.producer_id == NO_PRODUCER_ID:
            return False
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return False
        if producer.batch_metadata:
            return header.last_offset == producer.batch_metadata[-1].last_offset
        return header.is_control and header.producer_epoch == producer.producer_epoch

    def _retained(self, header: BatchHeader, batch: bytes) -> Generator[Work, None, list[Record]]:
        """Return the records that stay, by the cases A to C."""
        latest_offset, last_offset_of = self._offsets.latest_offset, self._offsets.get
        horizon_ms = header.delete_horizon_ms
        keeps_tombstones = horizon_ms is None or self._now_ms < horizon_ms
        retained = []
        for number, record in enumerate(iter_records(batch), 1):
            if record.offset > latest_offset:
                retained.append(record)
            elif record.key is None:
                self._stats.invalid_messages_read += 1
            elif record.offset >= last_offset_of(record.key) and (record.value is not None or keeps_tombstones):
                retained.append(record)
            if number % RECORDS_PER_UNIT == 0:
                yield Work(RECORDS_PER_UNIT, 0)
        return retained
