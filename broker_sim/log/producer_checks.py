"""The checks of a producer's batch before it is appended; mirrors `ProducerAppendInfo`.

    batch's epoch      its first sequence              result
    < current          any                             INVALID_PRODUCER_EPOCH
    > current          0                               appended, a new epoch begins
    > current          other                           OUT_OF_ORDER_SEQUENCE_NUMBER
    = current          last + 1 (0 after 2^31 - 1)     appended
    = current          one of the last five batches    duplicate
    = current          other                           OUT_OF_ORDER_SEQUENCE_NUMBER
    producer unknown   any                             appended

While the producer has a `VerificationStateEntry` (KIP-890), a sequence above the lowest of that entry
is out of order too; so is every sequence but 0 of an unknown producer of transaction version 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.append_info import AppendOrigin
from broker_sim.protocol.record_batch import MAX_SEQUENCE, NO_PRODUCER_EPOCH

if TYPE_CHECKING:
    from broker_sim.log.producer_state_entry import ProducerStateEntry, VerificationStateEntry
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.protocol.record_batch import BatchHeader
    from broker_sim.protocol.records import EndTxnMarker

UNKNOWN_TRANSACTION_VERSION: Final = -1
_MAX_EPOCH: Final = 2**15 - 1
_EPOCH_BUMP_TRANSACTION_VERSION: Final = 2
_CLIENT: Final = AppendOrigin.CLIENT


def check_data_batch(
    topic_partition: TopicPartition,
    header: BatchHeader,
    offset: int,
    origin: str,
    entry: ProducerStateEntry | None,
    verification: VerificationStateEntry | None,
) -> None:
    """Raise an `ApiError` unless the producer may write records at `offset`.

    INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER (clients only) or INVALID_TXN_STATE.
    """
    if entry is not None and header.producer_epoch < entry.producer_epoch:
        raise fenced_epoch(topic_partition, header, entry.producer_epoch, offset, "smaller than")
    if origin == _CLIENT:
        if verification is not None:
            _check_first_sequence(topic_partition, header, offset, entry, verification)
        if entry is not None:
            _check_sequence(topic_partition, header, offset, entry)
    if entry is not None and entry.current_txn_first_offset is not None and not header.is_transactional:
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE,
            f"Expected transactional write from producer {header.producer_id} at offset {offset} "
            f"in partition {topic_partition}",
        )


def _check_first_sequence(
    topic_partition: TopicPartition,
    header: BatchHeader,
    offset: int,
    entry: ProducerStateEntry | None,
    verification: VerificationStateEntry,
) -> None:
    """Check the sequence of a producer whose transaction is not verified in this partition yet."""
    sequence = header.base_sequence
    is_unknown = entry is None or not entry.batch_metadata
    if verification.supports_epoch_bump and sequence != 0 and is_unknown:
        problem = "Expected sequence 0 for transactions v2 idempotent producer without state"
    elif sequence > verification.lowest_sequence:
        problem = f"{verification.lowest_sequence} (earliest seen sequence)"
    else:
        return
    raise ApiError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Out of order sequence number for producer {header.producer_id} at offset {offset} in "
        f"partition {topic_partition}: {sequence} (incoming seq. number), {problem}",
    )


def _check_sequence(
    topic_partition: TopicPartition, header: BatchHeader, offset: int, entry: ProducerStateEntry
) -> None:
    sequence = header.base_sequence
    if entry.producer_epoch == NO_PRODUCER_EPOCH:
        return
    if header.producer_epoch != entry.producer_epoch:
        if sequence != 0:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for new epoch of producer {header.producer_id} at "
                f"offset {offset} in partition {topic_partition}: "
                f"{header.producer_epoch} (request epoch), {sequence} (seq. number), "
                f"{entry.producer_epoch} (current producer epoch)",
            )
        return
    last = entry.last_sequence
    if sequence != last + 1 and not (sequence == 0 and last == MAX_SEQUENCE):
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {header.producer_id} at offset "
            f"{offset} in partition {topic_partition}: {sequence} (incoming seq. "
            f"number), {last} (current end sequence number)",
        )


def check_end_txn_marker(
    topic_partition: TopicPartition,
    header: BatchHeader,
    marker: EndTxnMarker,
    offset: int,
    transaction_version: int,
    entry: ProducerStateEntry | None,
) -> None:
    """Raise an `ApiError` unless the marker may be written at `offset`.

    From transaction version 2 on (KIP-890) a marker carries a higher epoch than its transaction; one
    of the same epoch is a retry of a marker that is in the log already.
    INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, or UNKNOWN_SERVER_ERROR without a version.
    """
    if transaction_version == UNKNOWN_TRANSACTION_VERSION:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The marker of a transaction needs its version")
    epoch = header.producer_epoch
    current = NO_PRODUCER_EPOCH if entry is None else entry.producer_epoch
    if transaction_version < _EPOCH_BUMP_TRANSACTION_VERSION:
        if epoch < current:
            raise fenced_epoch(topic_partition, header, current, offset, "smaller than")
    elif epoch <= current:
        is_retry = epoch == current and (entry is None or entry.current_txn_first_offset is None or epoch == _MAX_EPOCH)
        if not is_retry:
            raise fenced_epoch(topic_partition, header, current, offset, "not larger than")
    if entry is not None and marker.coordinator_epoch < entry.coordinator_epoch:
        raise ApiError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"Invalid coordinator epoch for producerId {header.producer_id} at offset "
            f"{offset} in partition {topic_partition}: {marker.coordinator_epoch} "
            f"(zombie), {entry.coordinator_epoch} (current)",
        )


def fenced_epoch(topic_partition: TopicPartition, header: BatchHeader, current: int, offset: int, how: str) -> ApiError:
    """Return the error for an epoch that is `how` (such as "smaller than") the current one."""
    return ApiError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Epoch of producer {header.producer_id} at offset {offset} in {topic_partition} is "
        f"{header.producer_epoch}, which is {how} the last seen epoch {current}",
    )
