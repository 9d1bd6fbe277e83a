"""The part of a batch that a cleaning retains, and the state for it: last offsets and transactions.

Mirrors the `RecordFilter` of `Cleaner.cleanInto`, `MemoryRecords.filterTo`, `SkimpyOffsetMap`,
`CleanedTransactionMetadata` and `CleanerStats`.

A record stays

    A  if it is above the last mapped offset
    B  if it is the last one of its key, and has a value
    C  if it is the last one of its key, a tombstone, and its delete horizon is not reached

and is removed with its batch if its transaction was aborted. The first cleaning that reads a tombstone, or
the marker of a transaction without records, writes the delete horizon into the batch: the current time plus
`delete.retention.ms` (KIP-534).

A batch without records stays, as a header, if it has the last sequence or epoch of an active producer, or
if it is the last one of the cleaned part, so that the log keeps its end offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.protocol.record_batch import NO_PRODUCER_ID
from broker_sim.protocol.records import Record, iter_records, read_end_txn_marker, rebuild_batch

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from broker_sim.log.partition_log import PartitionLog
    from broker_sim.log.transaction_index import AbortedTxn
    from broker_sim.protocol.record_batch import BatchHeader

_BYTES_PER_ENTRY: Final = 24


@dataclass(slots=True)
class CleanerStats:
    """Counters of one cleaning; times are in ms of the broker's clock."""

    start_ms: int = 0
    map_complete_ms: int = 0
    end_ms: int = 0
    map_bytes_read: int = 0
    map_messages_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    messages_read: int = 0
    messages_written: int = 0
    invalid_messages_read: int = 0
    """Records without a key, which the cleaner drops."""
    buffer_utilization: float = 0.0
    """The used share of the buffer for keys, from 0 to 1."""

    @property
    def elapsed_ms(self) -> int:
        """The duration of the cleaning, in ms."""
        return self.end_ms - self.start_ms

    @property
    def size_reduction_percent(self) -> float:
        """Percentage of bytes that the cleaning has removed."""
        return _reduction_percent(self.bytes_read, self.bytes_written)

    @property
    def message_reduction_percent(self) -> float:
        """Percentage of records that the cleaning has removed."""
        return _reduction_percent(self.messages_read, self.messages_written)


def _reduction_percent(before: int, after: int) -> float:
    return round(100 * (1 - after / before), 1) if before else 0.0


class OffsetMap:
    """The last offset of each key in the dirty part of a log, and the offset up to which the log has been mapped.

    Deliberate difference: keys are kept as they are, where Kafka keeps their MD5. A key still counts as 24 bytes of
    the buffer (hash and offset), so that a map is full where Kafka's is.
    """

    __slots__ = ("_max_keys", "_offsets", "_slots", "latest_offset")

    def __init__(self, buffer_bytes: int, load_factor: float) -> None:
        """Create an empty map for as many keys as fill `load_factor` of the buffer, but at least one."""
        self._slots = max(buffer_bytes // _BYTES_PER_ENTRY, 1)
        self._max_keys = max(int(self._slots * load_factor), 1)
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = -1
        """The last offset that has been mapped; the records after it stay as they are."""

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether no more keys may be put."""
        return len(self._offsets) >= self._max_keys

    @property
    def utilization(self) -> float:
        """The share of the buffer that is used, from 0 to 1."""
        return len(self._offsets) / self._slots

    def put(self, key: bytes, offset: int) -> None:
        """Set the offset of a key."""
        self._offsets[key] = offset

    def get(self, key: bytes) -> int:
        """Return the offset of a key, -1 if it is not in the map."""
        return self._offsets.get(key, -1)


class _OngoingAbortedTxn:
    """An aborted transaction from its first offset to its marker."""

    __slots__ = ("aborted", "has_batches")

    def __init__(self, aborted: AbortedTxn) -> None:
        self.aborted = aborted
        self.has_batches = False


class CleanedTransactionMetadata:
    """The transactions of a cleaning, batch by batch in the order of the log.

    A batch of an aborted transaction is removed at once. A marker may be removed if no batch of its transaction
    precedes it, so at the earliest in the cleaning after the one that has removed the last of them.
    """

    __slots__ = ("_aborted", "_ongoing_aborted", "_ongoing_committed", "_remaining")

    def __init__(self) -> None:
        self._aborted: list[tuple[int, AbortedTxn]] = []
        self._ongoing_aborted: dict[int, _OngoingAbortedTxn] = {}
        self._ongoing_committed: set[int] = set()
        self._remaining: list[AbortedTxn] = []

    def add_aborted(self, aborted: Iterable[AbortedTxn]) -> None:
        """Add the aborted transactions of the following batches."""
        for txn in aborted:
            heappush(self._aborted, (txn.first_offset, txn))

    def take_remaining(self) -> list[AbortedTxn]:
        """Return the aborted transactions that had batches and have ended since the last call."""
        remaining, self._remaining = self._remaining, []
        return remaining

    def on_batch_read(self, header: BatchHeader) -> bool:
        """Return whether a data batch belongs to an aborted transaction."""
        self._begin_aborted(header.last_offset)
        if not header.is_transactional:
            return False
        ongoing = self._ongoing_aborted.get(header.producer_id)
        if ongoing is None:
            self._ongoing_committed.add(header.producer_id)
            return False
        ongoing.has_batches = True
        return True

    def on_control_batch_read(self, header: BatchHeader, batch: bytes) -> bool:
        """Return whether no batch of the marker's transaction precedes it; True for an empty marker."""
        self._begin_aborted(header.last_offset)
        if not header.records_count:
            return True
        if read_end_txn_marker(batch).is_commit:
            was_met = header.producer_id in self._ongoing_committed
            self._ongoing_committed.discard(header.producer_id)
            return not was_met
        ongoing = self._ongoing_aborted.pop(header.producer_id, None)
        if ongoing is None or not ongoing.has_batches:
            return True
        self._remaining.append(ongoing.aborted)
        return False

    def _begin_aborted(self, offset: int) -> None:
        """Begin the aborted transactions whose first offset is at or before `offset`."""
        while self._aborted and self._aborted[0][0] <= offset:
            _, txn = heappop(self._aborted)
            self._ongoing_aborted.setdefault(txn.producer_id, _OngoingAbortedTxn(txn))


RECORDS_PER_UNIT: Final = 128
"""Number of records of a batch after which the work may be interrupted."""


class Work(NamedTuple):
    """The size of a completed piece of work."""

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
        """`upper_bound_offset` is the end offset of the cleaned part."""
        self._producers = log.producer_state.active_producers
        self._now_ms = log.clock.wall_clock_ms()
        self._delete_retention_ms = log.config.delete_retention_ms
        self._offsets = offsets
        self._transactions = transactions
        self._upper_bound_offset = upper_bound_offset
        self._stats = stats

    def filter(self, header: BatchHeader, batch: bytes) -> Generator[Work, None, bytes | None]:
        """Return the batch, a smaller one of the same offsets, or None if nothing is retained."""
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
        """Return the marker, with a delete horizon once its transaction has no records."""
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
        """Return the retained records, by the cases A to C."""
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
