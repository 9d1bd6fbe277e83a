"""The state of one transactional id at its coordinator; mirrors `TransactionMetadata`.

A change has two steps. `prepare_...` returns the new values and blocks other changes; the values are
appended to the log, and `complete_transition_to` applies them once the record is committed.

Epoch bumps (KIP-890): when a `TV_2` client ends a transaction, PrepareCommit or PrepareAbort raises the
producer epoch by one; the markers and the client's next transaction use the new epoch. Epoch 32767 is
for markers only: after it, the client continues with a new producer id (`next_producer_id`) in epoch 0.
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
NO_TIMEOUT_MS: Final = (1 << 31) - 1
"""Transaction timeout of a producer with two-phase commits; such a transaction never times out."""
NO_PARTITIONS: Final[Mapping[TopicPartition, None]] = MappingProxyType({})


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Whether no later epoch is available to producers: the last one is reserved for markers."""
    return producer_epoch >= MAX_EPOCH - 1


class TxnTransitMetadata(NamedTuple):
    """The values of a transactional id, as in one record of the log; times are wall-clock."""

    state: TransactionState
    producer_id: int
    timeout_ms: int
    last_update_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch that a retried request may still have; not stored in the log."""
    partitions: Mapping[TopicPartition, None] = NO_PARTITIONS
    """Partitions that still need a marker, in the order in which they were added."""
    start_ms: int = NO_TIMESTAMP
    client_version: TransactionVersion = TransactionVersion.TV_0


class TransactionMetadata:
    """One transactional id at its coordinator. Thread rule: the broker's loop."""

    __slots__ = ("has_failed_epoch_fence", "pending_state", "transactional_id", "values")

    def __init__(self, transactional_id: str, values: TxnTransitMetadata) -> None:
        self.transactional_id = transactional_id
        self.values = values
        self.pending_state: TransactionState | None = None
        """Target state of a change that is being written; other changes are rejected until it is done."""
        self.has_failed_epoch_fence = False
        """Whether writing a fencing epoch has failed; if so, the epoch is not raised again."""

    # -- state ----------------------------------------------------------------------------------

    @property
    def state(self) -> TransactionState:
        """The last committed state."""
        return self.values.state

    @property
    def producer_id(self) -> int:
        """The current producer id."""
        return self.values.producer_id

    @property
    def producer_epoch(self) -> int:
        """The producer's epoch; -1 until the first InitProducerId is committed."""
        return self.values.producer_epoch

    @property
    def partitions(self) -> Mapping[TopicPartition, None]:
        """Partitions of the transaction that still need a marker."""
        return self.values.partitions

    @property
    def is_open(self) -> bool:
        """Whether a transaction is ongoing or its markers are not all written."""
        return self.state is TransactionState.ONGOING or self.state.is_prepared

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer needs a new producer id after this epoch."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def is_being_fenced(self) -> bool:
        """Whether the transaction is being aborted to fence the producer."""
        return self.pending_state is TransactionState.PREPARE_EPOCH_FENCE

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether the transaction has been ongoing for longer than its timeout, if it has one."""
        values = self.values
        return (
            self.pending_state is None
            and values.timeout_ms != NO_TIMEOUT_MS
            and values.state is TransactionState.ONGOING
            and values.start_ms + values.timeout_ms < now_ms
        )

    def check_nothing_pending(self, *, except_fence: bool = False) -> None:
        """Raise `ApiError` CONCURRENT_TRANSACTIONS while another change is being written.

        With `except_fence`, an abort that fences the producer does not count.
        """
        if self.pending_state is not None and not (except_fence and self.is_being_fenced):
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)

    # -- changes --------------------------------------------------------------------------------

    def prepare_fence_producer_epoch(self) -> TxnTransitMetadata:
        """Raise the epoch for an abort that fences the producer; no client gets this epoch."""
        epoch = self.producer_epoch
        if not self.has_failed_epoch_fence and epoch < MAX_EPOCH:
            epoch += 1
        return self._prepare(TransactionState.PREPARE_EPOCH_FENCE, producer_epoch=epoch)

    def prepare_increment_producer_epoch(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> TxnTransitMetadata:
        """Reset to Empty with the next epoch; `expected_epoch` is the epoch in the request (KIP-360), if any.

        A retried request gets the same epoch again. Raises `ApiError` PRODUCER_FENCED for an older epoch.
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
        """Reset to Empty with a new producer id, because the epochs of the current one are exhausted."""
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
        """Add partitions to the transaction; the first ones begin it."""
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
        """Prepare to commit or abort the transaction.

        In `TV_2` an abort may have no partitions: the coordinator may not have received any yet.
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
        """Prepare the final state of the transaction, written once all partitions have their markers."""
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
        """Prepare to remove the id once its tombstone is committed."""
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
        """Apply a fencing epoch before it is written, which the `TV_0` path requires."""
        self.values = self.values._replace(producer_epoch=producer_epoch, last_producer_epoch=NO_PRODUCER_EPOCH)

    def remove_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Remove partitions that have their markers or need none."""
        assert self.state.is_prepared
        remaining_partitions = {key: None for key in self.partitions if key not in partitions}
        self.values = self.values._replace(partitions=remaining_partitions)

    def complete_transition_to(self, values: TxnTransitMetadata) -> None:
        """Apply a change whose record is committed."""
        assert self.pending_state is values.state, f"{self.pending_state} is not {values.state}"
        assert values.state is not TransactionState.DEAD
        self.values = values
        self.pending_state = None
