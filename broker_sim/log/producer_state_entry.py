"""The state of one producer in a log; mirrors `ProducerStateEntry`, `BatchMetadata`, `VerificationStateEntry`.

A transaction is verified as follows (KIP-890). The first batch that a producer writes to a partition in a
transaction is appended only if the coordinator has the partition in that transaction. The coordinator's answer may
arrive after the transaction has ended: then nothing would ever end the appended batch. So each verification has a
guard, an object that only the append after the answer has, and that is dropped by the transaction's next marker or
batch.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.protocol.record_batch import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    decrement_sequence,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

NUM_BATCHES_TO_RETAIN: Final = 5
"""Number of batches kept per producer: the maximum in flight, so that every retry is recognised."""


class BatchMetadata(NamedTuple):
    """A batch that the producer has written, by which a retry is distinguished from a gap."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """The sequence of the batch's first record."""
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """The offset of the batch's first record."""
        return self.last_offset - self.offset_delta


class ProducerStateEntry:
    """Epoch, transaction and the last five batches of one producer id."""

    __slots__ = (
        "batch_metadata",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        *,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = NO_TIMESTAMP,
        current_txn_first_offset: int | None = None,
        batch_metadata: Iterable[BatchMetadata] = (),
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        self.batch_metadata = deque(batch_metadata, NUM_BATCHES_TO_RETAIN)

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, -1 if none is known in this epoch."""
        return self.batch_metadata[-1].last_sequence if self.batch_metadata else NO_SEQUENCE

    def has_ongoing_transaction(self, producer_epoch: int) -> bool:
        """Whether a transaction of that epoch is open: one of an older epoch may have ended."""
        return self.current_txn_first_offset is not None and self.producer_epoch == producer_epoch

    def copy(self) -> ProducerStateEntry:
        """Return an independent entry of the same content."""
        return ProducerStateEntry(
            self.producer_id,
            producer_epoch=self.producer_epoch,
            coordinator_epoch=self.coordinator_epoch,
            last_timestamp=self.last_timestamp,
            current_txn_first_offset=self.current_txn_first_offset,
            batch_metadata=self.batch_metadata,
        )

    def for_snapshot(self) -> ProducerStateEntry:
        """Return a copy for a snapshot, with only the last batch."""
        entry = self.copy()
        while len(entry.batch_metadata) > 1:
            entry.batch_metadata.popleft()
        return entry

    def find_duplicate_batch(self, header: BatchHeader) -> BatchMetadata | None:
        """Return the written batch of exactly these sequences in the same epoch, or None."""
        if header.producer_epoch != self.producer_epoch:
            return None
        last_sequence = header.last_sequence
        for batch in self.batch_metadata:
            if batch.last_sequence == last_sequence and (batch.first_sequence == header.base_sequence):
                return batch
        return None

    def add_batch(self, producer_epoch: int, batch: BatchMetadata) -> None:
        """Add a written batch; a new epoch drops the batches of the epoch before."""
        self.update_epoch(producer_epoch)
        self.batch_metadata.append(batch)
        self.last_timestamp = batch.timestamp

    def update_epoch(self, producer_epoch: int) -> None:
        """Set the epoch; a new epoch drops the batches of the epoch before."""
        if self.producer_epoch != producer_epoch:
            self.batch_metadata.clear()
            self.producer_epoch = producer_epoch

    def end_transaction(self, producer_epoch: int, coordinator_epoch: int, timestamp: int) -> None:
        """Apply the marker that ended the producer's transaction."""
        self.update_epoch(producer_epoch)
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = None
        self.last_timestamp = timestamp


class VerificationGuard:
    """The identity of one verification by the coordinator; equal only to itself."""

    __slots__ = ()


class VerificationStateEntry:
    """The pending verification of one producer, and the lowest sequence that it has tried to write.

    A higher sequence is refused until that one is appended. Otherwise a batch whose verification failed
    could never be retried. `supports_epoch_bump` is true for transaction version 2.
    """

    __slots__ = ("epoch", "guard", "lowest_sequence", "supports_epoch_bump", "timestamp")

    def __init__(self, timestamp: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> None:
        self.timestamp = timestamp
        self.guard = VerificationGuard()
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump

    def update(self, sequence: int, epoch: int) -> None:
        """Add another batch that needs verification; a higher epoch starts over."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
