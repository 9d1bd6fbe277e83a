"""Commit and abort; mirrors `TransactionCoordinator.endTransaction` and `endTransactionWithTV1`.

| state | on a commit | on an abort |
|---|---|---|
| Empty | INVALID_TXN_STATE | `TV_2`: PrepareAbort; else INVALID_TXN_STATE |
| Ongoing | PrepareCommit | PrepareAbort |
| PrepareCommit | CONCURRENT_TRANSACTIONS | INVALID_TXN_STATE |
| PrepareAbort | INVALID_TXN_STATE | CONCURRENT_TRANSACTIONS |
| CompleteCommit | NONE if it is a retry (same epoch) | `TV_2`: PrepareAbort of an empty transaction |
| CompleteAbort | INVALID_TXN_STATE | NONE if it is a retry; `TV_2`: PrepareAbort of an empty transaction |

In `TV_2` a retry is recognized by its epoch, which is one below the current epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.record_batch import NO_PRODUCER_ID
from broker_sim.transaction.metadata import MAX_EPOCH
from broker_sim.transaction.state import TransactionState, TransactionVersion

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.transaction.metadata import TransactionMetadata, TxnTransitMetadata


class EndOfTransaction(NamedTuple):
    """A commit or abort requested by a client or by the coordinator itself."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    version: TransactionVersion
    is_from_client: bool = True

    @property
    def prepared_state(self) -> TransactionState:
        """The state until all markers are written."""
        if self.is_commit:
            return TransactionState.PREPARE_COMMIT
        return TransactionState.PREPARE_ABORT

    @property
    def complete_state(self) -> TransactionState:
        """The state once all markers are written."""
        if self.is_commit:
            return TransactionState.COMPLETE_COMMIT
        return TransactionState.COMPLETE_ABORT


def prepare_end(
    metadata: TransactionMetadata, end: EndOfTransaction, now_ms: int, next_producer_id: Callable[[], int]
) -> TxnTransitMetadata | None:
    """Return the prepared change, or None for a retry of an end that is already complete.

    `next_producer_id()` is called if the producer's epochs are exhausted. Raises `ApiError`.
    """
    if end.version.supports_epoch_bump:
        return _prepare_with_epoch_bump(metadata, end, now_ms, next_producer_id)
    return _prepare_in_same_epoch(metadata, end, now_ms)


def _prepare_in_same_epoch(
    metadata: TransactionMetadata, end: EndOfTransaction, now_ms: int
) -> TxnTransitMetadata | None:
    if metadata.producer_id != end.producer_id:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if not _has_current_epoch(metadata, end):
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    metadata.check_nothing_pending(except_fence=True)
    if metadata.state is end.complete_state:
        return None
    if metadata.state is not TransactionState.ONGOING:
        raise _invalid_transition(metadata, end)
    if metadata.is_being_fenced:
        metadata.pending_state = None
        metadata.fence(end.producer_epoch)
    return metadata.prepare_abort_or_commit(
        end.prepared_state, TransactionVersion.TV_0, NO_PRODUCER_ID, now_ms, no_partition_added=False
    )


def _prepare_with_epoch_bump(
    metadata: TransactionMetadata, end: EndOfTransaction, now_ms: int, next_producer_id: Callable[[], int]
) -> TxnTransitMetadata | None:
    is_fence = metadata.is_being_fenced
    epoch = metadata.producer_epoch
    is_retry_on_overflow = (
        not is_fence
        and metadata.values.previous_producer_id == end.producer_id
        and end.producer_epoch == MAX_EPOCH - 1
        and epoch == 0
    )
    is_retry_on_bump = not is_fence and epoch == end.producer_epoch + 1
    is_retry = is_retry_on_bump or is_retry_on_overflow
    if is_fence:
        is_valid_epoch = _has_current_epoch(metadata, end)
    elif metadata.state.is_prepared:
        is_valid_epoch = is_retry_on_bump
    else:
        is_valid_epoch = end.producer_epoch == epoch or (is_retry and metadata.state in _ENDED)
    metadata.check_nothing_pending(except_fence=True)
    if metadata.producer_id != end.producer_id and not is_retry_on_overflow:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if not is_valid_epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if is_retry and metadata.state is end.complete_state:
        return None
    is_ongoing = metadata.state is TransactionState.ONGOING
    begins_empty = metadata.state.is_complete and not is_retry and not end.is_commit
    if not is_ongoing and not begins_empty:
        raise _invalid_transition(metadata, end)
    if is_fence:
        metadata.pending_state = None
    return metadata.prepare_abort_or_commit(
        end.prepared_state,
        end.version,
        next_producer_id() if metadata.is_epoch_exhausted else NO_PRODUCER_ID,
        now_ms,
        no_partition_added=not is_ongoing,
    )


_ENDED = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})


def _has_current_epoch(metadata: TransactionMetadata, end: EndOfTransaction) -> bool:
    """Whether the caller's epoch is current; the coordinator itself may use a later one."""
    if end.is_from_client:
        return end.producer_epoch == metadata.producer_epoch
    return end.producer_epoch >= metadata.producer_epoch


def _invalid_transition(metadata: TransactionMetadata, end: EndOfTransaction) -> ApiError:
    if metadata.state is end.prepared_state:
        return ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return ApiError(ErrorCode.INVALID_TXN_STATE)
