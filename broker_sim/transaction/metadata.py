"""The state of one transactional id at its coordinator; mirrors `TransactionMetadata`.

A change has two steps. `prepare_...` returns the values after it and keeps any other change out; they
are appended to the log, and `complete_transition_to` takes them in once the replicas have the record.

How the producer's epoch rises (KIP-890): a client of `TV_2` ends a transaction, the id goes to
PrepareCommit or PrepareAbort with the next epoch, in which the markers are written, and the client's
next transaction has that epoch. Epoch 32767 is for markers only: where a transaction ends in it, the
client goes on with a new producer id (`next_producer_id`) in epoch 0.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from broker_sim.transaction.state import TransactionState, TransactionVersion

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from broker_sim.metadata.topic_partition import TopicPartition

MAX_EPOCH: Final = 32_767
NO_PARTITIONS: Final[Mapping[TopicPartition, None]] = MappingProxyType({})


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Whether a producer cannot go on after this epoch: the last one is for markers."""
    return producer_epoch >= MAX_EPOCH - 1


class TxnTransitMetadata(NamedTuple):
    """The values of a transactional id, as one record of the log has them; times are wall clock."""

    state: TransactionState
    producer_id: int
    timeout_ms: int
    last_update_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch that a repeated request may still have; it is not in the log."""
    partitions: Mapping[TopicPartition, None] = NO_PARTITIONS
    """The partitions that need a marker, in the order in which they were added."""
    start_ms: int = NO_TIMESTAMP
    client_version: TransactionVersion = TransactionVersion.TV_0


class TransactionMetadata:
    """One transactional id at its coordinator. Thread rule: the broker's loop."""

    __slots__ = ("has_failed_epoch_fence", "pending_state", "transactional_id", "values")

    def __init__(self, transactional_id: str, values: TxnTransitMetadata) -> None:
        self.transactional_id = transactional_id
        self.values = values
        self.pending_state: TransactionState | None = None
        """The state of a change that is being written; nothing else may change meanwhile."""
        self.has_failed_epoch_fence = False
        """Whether writing a fencing epoch has failed; the epoch is not raised again then."""

    # -- what is known --------------------------------------------------------------------------

    @property
    def state(self) -> TransactionState:
        """The last written state."""
        return self.values.state

    @property
    def producer_id(self) -> int:
        """The producer id in use."""
        return self.values.producer_id

    @property
    def producer_epoch(self) -> int:
        """The producer's epoch; -1 before the first InitProducerId has been written."""
        return self.values.producer_epoch

    @property
    def partitions(self) -> Mapping[TopicPartition, None]:
        """The partitions of the transaction, without those that have their marker."""
        return self.values.partitions

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open, or its markers are not all written."""
        return self.state is TransactionState.ONGOING or self.state.is_prepared

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer needs a new id after this epoch."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def is_being_fenced(self) -> bool:
        """Whether its transaction is being aborted to fence the producer."""
        return self.pending_state is TransactionState.PREPARE_EPOCH_FENCE

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether its transaction is open for longer than its timeout."""
        values = self.values
        return (
            self.pending_state is None
            and values.state is TransactionState.ONGOING
            and values.start_ms + values.timeout_ms < now_ms
        )

    # -- changes --------------------------------------------------------------------------------

    def prepare_fence_producer_epoch(self) -> TxnTransitMetadata:
        """Raise the epoch to abort a transaction in it; no client gets this epoch."""
        epoch = self.producer_epoch
        if not self.has_failed_epoch_fence and epoch < MAX_EPOCH:
            epoch += 1
        return self._prepare(TransactionState.PREPARE_EPOCH_FENCE, producer_epoch=epoch)

    def prepare_increment_producer_epoch(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> TxnTransitMetadata:
        """Begin anew in the next epoch; `expected_epoch` is what the producer thinks it has (KIP-360).

        A producer that repeats its request gets the same epoch again. Raises `ApiError`
        PRODUCER_FENCED for one that is older.
        """
        epoch, last_epoch = self.producer_epoch, self.values.last_producer_epoch
        assert not self.is_epoch_exhausted
        if expected_epoch is None:
            epoch, last_epoch = epoch + 1, NO_PRODUCER_EPOCH
        elif epoch in {NO_PRODUCER_EPOCH, expected_epoch}:
            epoch, last_epoch = epoch + 1, epoch
        elif expected_epoch != last_epoch:
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        return self._prepare_empty(self.producer_id, epoch, last_epoch, timeout_ms, now_ms)

    def prepare_producer_id_rotation(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, record_last_epoch: bool
    ) -> TxnTransitMetadata:
        """Begin anew with another producer id, because the epochs of this one are exhausted."""
        last_epoch = self.producer_epoch if record_last_epoch else NO_PRODUCER_EPOCH
        return self._prepare_empty(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def _prepare_empty(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> TxnTransitMetadata:
        return self._prepare(
            TransactionState.EMPTY,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions={},
            start_ms=NO_TIMESTAMP,
            last_update_ms=now_ms,
        )

    def prepare_add_partitions(
        self, partitions: Iterable[TopicPartition], now_ms: int, version: TransactionVersion
    ) -> TxnTransitMetadata:
        """Add partitions to the transaction, which begins with the first ones."""
        return self._prepare(
            TransactionState.ONGOING,
            partitions={**self.partitions, **dict.fromkeys(partitions)},
            start_ms=now_ms if self.state.is_complete else self.values.start_ms,
            last_update_ms=now_ms,
            client_version=version,
        )

    def prepare_abort_or_commit(
        self,
        state: TransactionState,
        version: TransactionVersion,
        next_producer_id: int,
        now_ms: int,
        *,
        no_partition_added: bool,
    ) -> TxnTransitMetadata:
        """Decide how the transaction ends.

        An abort may have no partition in `TV_2`: the coordinator may have heard of none yet.
        """
        epoch, last_epoch = self.producer_epoch, self.values.last_producer_epoch
        if version.supports_epoch_bump:
            last_epoch = epoch
            if epoch < MAX_EPOCH:
                epoch += 1
        return self._prepare(
            state,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            start_ms=now_ms if no_partition_added else self.values.start_ms,
            next_producer_id=next_producer_id,
            last_update_ms=now_ms,
            client_version=version,
        )

    def prepare_complete(self, now_ms: int) -> TxnTransitMetadata:
        """End the transaction, once all its partitions have their markers."""
        self.has_failed_epoch_fence = False
        values = self.values
        producer_id, epoch = values.producer_id, values.producer_epoch
        if values.client_version.supports_epoch_bump and values.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = values.next_producer_id, 0
        return self._prepare(
            TransactionState.COMPLETE_COMMIT
            if values.state is TransactionState.PREPARE_COMMIT
            else TransactionState.COMPLETE_ABORT,
            producer_id=producer_id,
            producer_epoch=epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions={},
            last_update_ms=now_ms,
        )

    def prepare_dead(self) -> TxnTransitMetadata:
        """Forget the id, as soon as its tombstone is written."""
        return self._prepare(TransactionState.DEAD, partitions={})

    def _prepare(self, state: TransactionState, **changes: object) -> TxnTransitMetadata:
        assert self.pending_state is None, f"{self.transactional_id} goes to {self.pending_state}"
        assert state.may_follow(self.state), f"{self.state.name} to {state.name}"
        self.pending_state = state
        values = self.values
        return values._replace(
            state=state,
            previous_producer_id=values.producer_id,
            **changes,  # type: ignore[arg-type]
        )

    def fence(self, producer_epoch: int) -> None:
        """Take the epoch that fences at once, before it is written, as clients of `TV_0` need it."""
        self.values = self.values._replace(producer_epoch=producer_epoch, last_producer_epoch=NO_PRODUCER_EPOCH)

    def remove_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Note that the partitions have their markers, or need none."""
        assert self.state.is_prepared
        remaining_partitions = {key: None for key in self.partitions if key not in partitions}
        self.values = self.values._replace(partitions=remaining_partitions)

    def complete_transition_to(self, values: TxnTransitMetadata) -> None:
        """Apply a change that has been written."""
        assert self.pending_state is values.state, f"{self.pending_state} is not {values.state}"
        assert values.state is not TransactionState.DEAD
        self.values = values
        self.pending_state = None
