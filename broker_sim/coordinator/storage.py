"""The partitions of an internal topic, which hold a coordinator's records.

Mirrors `PartitionWriter` and the reading side of `CoordinatorLoaderImpl`; the broker implements it on its replica
manager. Also the transactions and markers of batches, and the errors that clients get for a failed append.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from broker_sim.protocol.records import build_end_txn_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.coordinator.records import RecordSerde
    from broker_sim.log import VerificationGuard
    from broker_sim.protocol.compression import CompressionCodec


class CoordinatorStorage(Protocol):
    """The partitions of one internal topic that this broker hosts, by their numbers."""

    def append(
        self,
        partition: int,
        batch: bytes,
        timeout_ms: int,
        on_appended: Callable[[int], object],
        on_done: Callable[[ErrorCode], object],
        *,
        verification_guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> None:
        """Append a batch with the checks of acks=all.

        Those of its transaction are made too: by the guard where it has records of one, by the
        `transaction.version` where it is a marker.

        `on_appended(last_offset)` is called before this returns if the leader has appended; then
        `on_done(NONE)` when the in-sync replicas have it, or with REQUEST_TIMED_OUT, or
        NOT_LEADER_OR_FOLLOWER. If the append failed, only `on_done(error)` is called, at once.
        """

    def check_append(self, partition: int) -> ErrorCode:
        """Return the error that an append would fail with now, whatever the batch; NONE without one."""

    def log_end_offset(self, partition: int) -> int:
        """Return the offset that the next record gets; 0 without the partition."""

    def max_batch_bytes(self, partition: int) -> int:
        """Return the largest batch that the topic allows (`max.message.bytes`); 0 without the partition."""

    def await_committed(
        self, partition: int, end_offset: int, timeout_ms: int, on_done: Callable[[ErrorCode], object]
    ) -> None:
        """Call `on_done` when the in-sync replicas have all records before `end_offset`, as above."""

    def delete_records(self, partition: int, before_offset: int, on_done: Callable[[ErrorCode], object]) -> None:
        """Delete the records before the offset, from all replicas."""

    def high_watermark(self, partition: int) -> int:
        """Return the offset below which everything is committed; 0 without the partition."""

    def read(self, partition: int) -> Iterator[bytes]:
        """Yield all batches of the partition's log, whole, from its start to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorTopic:
    """An internal topic, and how its coordinator writes it."""

    name: str
    storage: CoordinatorStorage
    default_partitions: int
    """Number of partitions the topic will have where it is still to be created."""
    serde: RecordSerde
    codec: CompressionCodec
    """Compression of the batches."""
    timeout_ms: int
    """Time for the in-sync replicas to get what was written, unless a result says otherwise."""
    base_sequence: int = 0
    """Base sequence of every batch: coordinators do not use sequence numbers."""
    keeps_shards_when_reelected: bool = True
    """Whether a shard goes on in a new epoch of the same leader; otherwise it is loaded again."""


class VerifiedTransaction(NamedTuple):
    """The transaction that a batch belongs to, and the guard from its verification."""

    producer_id: int
    producer_epoch: int
    verification_guard: VerificationGuard | None


NO_TRANSACTION: Final = VerifiedTransaction(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, None)


class TransactionMarker(NamedTuple):
    """The end of a transaction in a partition; mirrors `WriteTxnMarkersRequest.TxnMarkerEntry`."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int

    def batch(self, timestamp_ms: int) -> bytes:
        """Return the marker's batch with that timestamp (wall clock)."""
        return build_end_txn_marker(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            is_commit=self.is_commit,
            timestamp=timestamp_ms,
            coordinator_epoch=self.coordinator_epoch,
        )


_CLIENT_ERRORS: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class AppendError(ApiError):
    """Records were not appended, or not committed in time; its `error_code` is what clients are told."""

    def __init__(self, append_error: ErrorCode) -> None:
        """`append_error` is the error that the append itself failed with."""
        super().__init__(coordinator_error(append_error))
        self.append_error = append_error


def coordinator_error(error_code: ErrorCode) -> ErrorCode:
    """Return the error code that clients get for the error of an append."""
    return _CLIENT_ERRORS.get(error_code, error_code)
