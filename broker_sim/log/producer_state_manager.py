"""The producers of one log; mirrors `ProducerStateManager` and `ProducerAppendInfo`.

For idempotent producers it recognises a retry (answered with the offsets of the batch in the log),
refuses a gap, and fences older epochs. It follows each transaction from its first record to its
marker; the last stable offset comes from that.

Deliberate differences: a batch is checked first and applied afterwards, where Kafka applies it to a
copy of the entry; and the log has one index of aborted transactions, not each of its segments.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import takewhile
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.producer_checks import check_data_batch, check_end_txn_marker, fenced_epoch
from broker_sim.log.producer_state_entry import (
    BatchMetadata,
    ProducerStateEntry,
    VerificationGuard,
    VerificationStateEntry,
)
from broker_sim.log.storage import LogStorage, MemoryStorage
from broker_sim.log.transaction_index import AbortedTxn, TransactionIndex
from broker_sim.protocol.record_batch import CONTROL_FLAG, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from broker_sim.protocol.records import read_end_txn_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.protocol.record_batch import BatchHeader

DEFAULT_PRODUCER_ID_EXPIRATION_MS = 86_400_000


class ProducerStateManagerConfig:
    """The broker's configurations of producers, shared by its logs and changed in place at run time."""

    __slots__ = ("producer_id_expiration_ms", "transaction_verification_enabled")

    def __init__(
        self,
        producer_id_expiration_ms: int = DEFAULT_PRODUCER_ID_EXPIRATION_MS,
        transaction_verification_enabled: bool = True,
    ) -> None:
        self.producer_id_expiration_ms = producer_id_expiration_ms
        """Time without a batch after which a producer is dropped."""
        self.transaction_verification_enabled = transaction_verification_enabled
        """Whether the coordinator verifies that a partition belongs to a transaction (KIP-890)."""


class UnreplicatedTransactions:
    """Ended transactions whose marker is not below the high watermark; Kafka's `unreplicatedTxns`.

    They are added and removed in the order of their markers. After a kill there may be very many of them, so no
    operation iterates over all.
    """

    __slots__ = ("_first_offsets", "markers")

    def __init__(self) -> None:
        self.markers: dict[int, int] = {}
        """First offset -> marker's offset, in the order of the markers."""
        self._first_offsets: list[int] = []
        """A heap; removed entries stay in it until they are the lowest."""

    def add(self, first_offset: int, marker_offset: int) -> None:
        """Add the transaction whose marker was just written."""
        self.markers[first_offset] = marker_offset
        heappush(self._first_offsets, first_offset)

    def forget_below(self, offset: int) -> None:
        """Remove the transactions whose marker is before `offset`."""
        below = takewhile(lambda item: item[1] < offset, self.markers.items())
        for first_offset in [first for first, _ in below]:
            del self.markers[first_offset]

    def lowest(self) -> int | None:
        """Return the lowest first offset, None if there is no transaction."""
        heap = self._first_offsets
        while heap and heap[0] not in self.markers:
            heappop(heap)
        return heap[0] if heap else None

    def clear(self) -> None:
        """Remove all transactions."""
        self.markers.clear()
        self._first_offsets.clear()


class ProducerStateManager:
    """Entries by producer id, the open transactions, and snapshots from which both are rebuilt."""

    __slots__ = (
        "_config",
        "_ongoing_txns",
        "_producers",
        "_snapshots",
        "_topic_partition",
        "_unreplicated_txns",
        "_verification_states",
        "first_unstable_offset",
        "map_end_offset",
        "transaction_index",
    )

    def __init__(
        self, topic_partition: TopicPartition, config: ProducerStateManagerConfig, storage: LogStorage | None = None
    ) -> None:
        """Begin with the snapshots and aborted transactions in `storage`; default: none."""
        storage = storage or MemoryStorage()
        self.map_end_offset = 0
        self.first_unstable_offset: int | None = None
        """The first offset of a transaction that is open or whose marker is not replicated."""
        self._topic_partition = topic_partition
        self._config = config
        self._producers: dict[int, ProducerStateEntry] = {}
        # First offset -> producer id, in the order of the log, and so in rising order.
        self._ongoing_txns: dict[int, int] = {}
        self._unreplicated_txns = UnreplicatedTransactions()
        self.transaction_index = TransactionIndex(storage.load_aborted_transactions())
        """The aborted transactions of the log."""
        self._verification_states: dict[int, VerificationStateEntry] = {}
        self._snapshots = storage.snapshots

    @property
    def active_producers(self) -> Mapping[int, ProducerStateEntry]:
        """The entries by producer id; for reading only."""
        return self._producers

    @property
    def is_empty(self) -> bool:
        """Whether neither producers nor unreplicated transactions are known."""
        return not self._producers and not self._unreplicated_txns.markers

    # -- appending ------------------------------------------------------------------------------

    def find_duplicate_batch(self, header: BatchHeader) -> BatchMetadata | None:
        """Return the batch in the log that `header` repeats, or None."""
        entry = self._producers.get(header.producer_id)
        return None if entry is None else entry.find_duplicate_batch(header)

    def check(
        self,
        batch: bytes | memoryview,
        header: BatchHeader,
        offset: int,
        origin: str,
        transaction_version: int = 0,
        verification_guard: VerificationGuard | None = None,
    ) -> None:
        """Raise an `ApiError` if the producer may not write the batch at `offset`.

        The errors of `check_data_batch` or, for a transaction's marker, of `check_end_txn_marker`; and
        INVALID_TXN_STATE for the first batch of a transaction without the guard of its verification.
        """
        entry = self._producers.get(header.producer_id)
        attributes = header.attributes
        if attributes & CONTROL_FLAG:
            check_end_txn_marker(
                self._topic_partition, header, read_end_txn_marker(batch, header), offset, transaction_version, entry
            )
            return
        if attributes & TRANSACTIONAL_FLAG:
            self._check_ongoing_or_verified(header, offset, entry, verification_guard)
        verification = None
        if self._verification_states:
            verification = self._verification_states.get(header.producer_id)
        if entry is not None or verification is not None:
            check_data_batch(self._topic_partition, header, offset, origin, entry, verification)

    def _check_ongoing_or_verified(
        self, header: BatchHeader, offset: int, entry: ProducerStateEntry | None, guard: VerificationGuard | None
    ) -> None:
        if entry is not None:
            if header.producer_epoch < entry.producer_epoch:
                raise fenced_epoch(self._topic_partition, header, entry.producer_epoch, offset, "smaller than")
            if entry.has_ongoing_transaction(header.producer_epoch):
                return
        if not self._config.transaction_verification_enabled:
            return
        state = self._verification_states.get(header.producer_id)
        if state is None or state.guard is not guard:
            raise ApiError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")

    # -- verification of transactions (KIP-890) -------------------------------------------------

    def maybe_start_verification(
        self, producer_id: int, sequence: int, epoch: int, now_ms: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """Return the guard of a verification by the coordinator; None in an ongoing transaction.

        `sequence` is the first one of the batch that waits for the answer. Raises
        INVALID_PRODUCER_EPOCH for an epoch below the last seen one.
        """
        entry = self._producers.get(producer_id)
        if entry is not None:
            if epoch < entry.producer_epoch:
                raise ApiError(
                    ErrorCode.INVALID_PRODUCER_EPOCH,
                    f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last "
                    f"seen epoch {entry.producer_epoch}",
                )
            if entry.has_ongoing_transaction(epoch):
                return None
        state = self._verification_states.get(producer_id)
        if state is None:
            state = self._verification_states[producer_id] = VerificationStateEntry(
                now_ms, sequence, epoch, supports_epoch_bump
            )
        else:
            state.update(sequence, epoch)
        return state.guard

    def update(self, batch: bytes, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """Apply a producer's batch that is now in the log, at `base_offset` with that timestamp."""
        entry = self._entry(header.producer_id)
        if header.attributes & TRANSACTIONAL_FLAG:
            self._verification_states.pop(header.producer_id, None)
        if header.attributes & CONTROL_FLAG:
            self._end_transaction(batch, header, entry, base_offset, timestamp)
            return
        delta = header.last_offset_delta
        entry.add_batch(
            header.producer_epoch, BatchMetadata(header.last_sequence, base_offset + delta, delta, timestamp)
        )
        if header.is_transactional and entry.current_txn_first_offset is None:
            entry.current_txn_first_offset = base_offset
            self._ongoing_txns[base_offset] = header.producer_id
            self._update_first_unstable_offset()

    def _end_transaction(
        self, batch: bytes, header: BatchHeader, entry: ProducerStateEntry, offset: int, timestamp: int
    ) -> None:
        if not header.records_count:  # the cleaner has dropped the whole transaction
            return
        marker = read_end_txn_marker(batch, header)
        first_offset = entry.current_txn_first_offset
        entry.end_transaction(header.producer_epoch, marker.coordinator_epoch, timestamp)
        if first_offset is None:
            return
        self._ongoing_txns.pop(first_offset, None)
        self._unreplicated_txns.add(first_offset, offset)
        if not marker.is_commit:
            next_undecided = next(iter(self._ongoing_txns), offset + 1)
            self.transaction_index.append(AbortedTxn(entry.producer_id, first_offset, offset, next_undecided))
        self._update_first_unstable_offset()

    def _entry(self, producer_id: int) -> ProducerStateEntry:
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerStateEntry(producer_id)
        return entry

    # -- transactions ---------------------------------------------------------------------------

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Drop the ended transactions whose markers are below the high watermark."""
        if self._unreplicated_txns.markers:
            self._remove_unreplicated_txns(high_watermark)

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Drop the transactions of deleted records; the producers stay until they expire."""
        self.transaction_index.truncate_from_start(log_start_offset)
        self._remove_unreplicated_txns(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)

    def _remove_unreplicated_txns(self, offset: int) -> None:
        self._unreplicated_txns.forget_below(offset)
        self._update_first_unstable_offset()

    def _update_first_unstable_offset(self) -> None:
        oldest = next(iter(self._ongoing_txns), None)
        unreplicated = self._unreplicated_txns.lowest()
        if unreplicated is not None:
            oldest = unreplicated if oldest is None else min(oldest, unreplicated)
        self.first_unstable_offset = oldest

    # -- expiry, snapshots, truncation ----------------------------------------------------------

    def remove_expired_producers(self, now_ms: int) -> None:
        """Expire the producers that wrote nothing for `producer.id.expiration.ms`.

        A producer with an open transaction does not expire. A verification without a batch for that time is
        dropped too.
        """
        for entry in list(self._producers.values()):
            if self._is_expired(now_ms, entry):
                del self._producers[entry.producer_id]
        for producer_id, state in list(self._verification_states.items()):
            if now_ms - state.timestamp >= self._config.producer_id_expiration_ms:
                del self._verification_states[producer_id]

    def _is_expired(self, now_ms: int, entry: ProducerStateEntry) -> bool:
        return (
            entry.current_txn_first_offset is None
            and now_ms - entry.last_timestamp >= self._config.producer_id_expiration_ms
        )

    def take_snapshot(self) -> None:
        """Save the producers as they are at `map_end_offset`, each with its last batch only."""
        if self.map_end_offset > max(self._snapshots, default=0):
            self._snapshots[self.map_end_offset] = [entry.for_snapshot() for entry in self._producers.values()]

    def remove_snapshot(self, offset: int) -> None:
        """Delete the snapshot of a deleted segment."""
        if offset in self._snapshots:
            del self._snapshots[offset]

    def truncate_and_reload(
        self,
        log_start_offset: int,
        log_end_offset: int,
        now_ms: int,
        batches_from: Callable[[int], Iterable[tuple[BatchHeader, bytes]]],
    ) -> None:
        """Rebuild the state of a log that is now [start, end) from a snapshot and later batches.

        `batches_from(offset)` returns the log's batches from an offset on. If the state already is that of
        the log's end, only the transactions before the log's start are dropped.
        """
        for offset in list(self._snapshots):
            if not log_start_offset < offset <= log_end_offset:
                del self._snapshots[offset]
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
        elif self.is_empty and self.map_end_offset > log_end_offset:
            self.transaction_index.truncate_to(log_end_offset)
        else:
            self._load_snapshot(log_start_offset, now_ms)
            for header, batch in batches_from(max(self.map_end_offset, log_start_offset)):
                if header.producer_id != NO_PRODUCER_ID:
                    self.update(batch, header, header.base_offset, header.max_timestamp)
        self.map_end_offset = log_end_offset

    def forget(self) -> None:
        """Drop all state but the snapshots, as a killed broker does."""
        self._verification_states.clear()
        self._clear()

    def _clear(self) -> None:
        self._producers.clear()
        self._ongoing_txns.clear()
        self._unreplicated_txns.clear()
        self.first_unstable_offset = None
        self.map_end_offset = -1

    def _load_snapshot(self, log_start_offset: int, now_ms: int) -> None:
        self._clear()
        self.map_end_offset, snapshot = self._newest_snapshot(log_start_offset)
        self.transaction_index.truncate_to(self.map_end_offset)
        for saved in snapshot:
            if not self._is_expired(now_ms, saved):
                self._producers[saved.producer_id] = saved.copy()
        self._ongoing_txns.update(
            sorted(
                (entry.current_txn_first_offset, entry.producer_id)
                for entry in self._producers.values()
                if entry.current_txn_first_offset is not None
            )
        )
        self._update_first_unstable_offset()

    def _newest_snapshot(self, log_start_offset: int) -> tuple[int, list[ProducerStateEntry]]:
        """Return offset and producers of the newest readable snapshot; unreadable ones are removed."""
        while self._snapshots:
            offset = max(self._snapshots)
            entries = self._snapshots.get(offset)
            if entries is not None:
                return offset, entries
        return log_start_offset, []

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop all state, snapshots included; the log continues at `offset`."""
        self._clear()
        for snapshot in list(self._snapshots):
            del self._snapshots[snapshot]
        self.transaction_index.clear()
        self.map_end_offset = offset
