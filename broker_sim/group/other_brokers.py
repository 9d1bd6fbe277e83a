"""Requests of the group coordinator to other brokers: verification of transactions, and latest offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker_sim.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker_sim.log import VerificationGuard
    from broker_sim.metadata.topic_partition import TopicPartition


class VerifyTransaction(Protocol):
    """Verifies a transaction with its coordinator; mirrors `PartitionWriter.maybeStartTransactionVerification`."""

    def __call__(
        self,
        partition: int,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        api_version: int,
        on_result: Callable[[ErrorCode, VerificationGuard | None], object],
    ) -> None:
        """Verify that a partition of `__consumer_offsets` is in the transaction, or add it.

        `api_version` (of TxnOffsetCommit) decides which. `on_result` is called once, possibly before this
        returns, with the guard for the append, or None if no verification was needed. Errors are those of the
        transaction coordinator, and NOT_LEADER_OR_FOLLOWER.
        """


class LatestOffset(NamedTuple):
    """The high watermark of a partition, or the error of the lookup; mirrors `OffsetResponse`."""

    offset: int
    error_code: ErrorCode = ErrorCode.NONE


class ListLatestOffsets(Protocol):
    """Requests offsets from partition leaders; mirrors `PartitionMetadataClient`."""

    def __call__(
        self, keys: Iterable[TopicPartition], on_result: Callable[[Mapping[TopicPartition, LatestOffset]], object]
    ) -> None:
        """Look up the latest offsets; `on_result` is called once with all of them, possibly before this returns."""
