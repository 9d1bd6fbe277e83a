"""Storage of a coordinator's records in the partitions of an internal topic.

Mirrors `PartitionWriter` and the reading side of `CoordinatorLoaderImpl`; the broker implements it on its replica
manager. Also defines transactions and markers of batches, and maps append errors to the errors that clients get.
"""

from __future__ import annotations

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
    """The partitions of one internal topic that this broker hosts, addressed by number."""

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
        """Append a batch with acks=all.

        `verification_guard` verifies a transactional batch, `transaction_version` the epoch of a marker.

        If the leader has appended the batch, `on_appended(last_offset)` is called before this returns;
        later `on_done` gets NONE when all in-sync replicas have it, REQUEST_TIMED_OUT or
        NOT_LEADER_OR_FOLLOWER. If the append failed, only `on_done(error)` is called, before this returns.
        """

    def check_append(self, partition: int) -> ErrorCode:
        """Return the error with which any append would fail now, or NONE."""

    def log_end_offset(self, partition: int) -> int:
        """Return the log end offset; 0 if this broker does not host the partition."""

    def max_batch_bytes(self, partition: int) -> int:
        """Return the topic's `max.message.bytes`; 0 if this broker does not host the partition."""

    def await_committed(
        self, partition: int, end_offset: int, timeout_ms: int, on_done: Callable[[ErrorCode], object]
    ) -> None:
        """Call `on_done` as `append` does, when all in-sync replicas have the records before `end_offset`."""

    def delete_records(self, partition: int, before_offset: int, on_done: Callable[[ErrorCode], object]) -> None:
        """Delete the records before the offset on all replicas."""

    def high_watermark(self, partition: int) -> int:
        """Return the high watermark; 0 if this broker does not host the partition."""

    def read(self, partition: int) -> Iterator[bytes]:
        """Yield all batches of the partition, complete, from log start to log end."""


class CoordinatorTopic(NamedTuple):
    """An internal topic, and how its coordinator writes to it."""

    name: str
    storage: CoordinatorStorage
    default_partitions: int
    """Number of partitions the topic gets when it is created."""
    serde: RecordSerde
    codec: CompressionCodec
    """Compression of the batches."""
    timeout_ms: int
    """Time the in-sync replicas have to get the records of a result without a timeout of its own."""
    base_sequence: int = 0
    """Base sequence of every batch: coordinators do not use sequence numbers."""
    keeps_shards_when_reelected: bool = True
    """Whether a shard is kept when the same leader gets a new epoch; otherwise it is reloaded."""


class VerifiedTransaction(NamedTuple):
    """The transaction of a batch, and the guard from its verification."""

    producer_id: int
    producer_epoch: int
    verification_guard: VerificationGuard | None


NO_TRANSACTION: Final = VerifiedTransaction(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, None)


class TransactionMarker(NamedTuple):
    """A commit or abort marker for one partition; mirrors `WriteTxnMarkersRequest.TxnMarkerEntry`."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int

    def batch(self, timestamp_ms: int) -> bytes:
        """Return the marker as a control batch; `timestamp_ms` is wall-clock time."""
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
    """Records were not appended, or not committed in time; `error_code` is the error for clients."""

    def __init__(self, append_error: ErrorCode) -> None:
        """`append_error` is the unmapped error of the append."""
        super().__init__(coordinator_error(append_error))
        self.append_error = append_error


def coordinator_error(error_code: ErrorCode) -> ErrorCode:
    """Map the error of an append to the error that clients get."""
    return _CLIENT_ERRORS.get(error_code, error_code)
