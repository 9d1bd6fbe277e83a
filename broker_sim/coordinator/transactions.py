"""What a batch of a coordinator has to do with transactions: the one that it is in, or a marker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.protocol.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from broker_sim.protocol.records import build_end_txn_marker

if TYPE_CHECKING:
    from broker_sim.log import VerificationGuard


class VerifiedTransaction(NamedTuple):
    """The transaction that a batch belongs to, and what shows that its coordinator knows of it."""

    producer_id: int
    producer_epoch: int
    verification_guard: VerificationGuard | None


NO_TRANSACTION: Final = VerifiedTransaction(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, None)


class TransactionMarker(NamedTuple):
    """What ends a transaction in a partition; mirrors `WriteTxnMarkersRequest.TxnMarkerEntry`."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int

    def batch(self, timestamp_ms: int) -> bytes:
        """Return the marker as it stands in a log, with that timestamp (wall clock)."""
        return build_end_txn_marker(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            is_commit=self.is_commit,
            timestamp=timestamp_ms,
            coordinator_epoch=self.coordinator_epoch,
        )
