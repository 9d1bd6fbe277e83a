"""The question of a partition's leader to the coordinator of a transaction (KIP-890)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from broker_sim.errors import ErrorCode
    from broker_sim.metadata.topic_partition import TopicPartition


class TransactionSupportedOperation(Enum):
    """What a client that writes to a transaction can handle; `AddPartitionsToTxnManager`'s."""

    DEFAULT_ERROR = "errors of before KIP-890"
    GENERIC_ERROR_SUPPORTED = "TRANSACTION_ABORTABLE too"
    ADD_PARTITION = "it leaves to the leader to add the partition (transaction version 2)"

    @property
    def supports_epoch_bump(self) -> bool:
        """Whether the producer's epoch grows with each transaction."""
        return self is TransactionSupportedOperation.ADD_PARTITION

    @classmethod
    def of_produce(cls, version: int) -> TransactionSupportedOperation:
        """Return what the version of a produce request tells."""
        if version >= 12:
            return cls.ADD_PARTITION
        return cls.GENERIC_ERROR_SUPPORTED if version == 11 else cls.DEFAULT_ERROR

    @classmethod
    def of_txn_offset_commit(cls, version: int) -> TransactionSupportedOperation:
        """Return what the version of a request to commit offsets in a transaction tells."""
        if version >= 5:
            return cls.ADD_PARTITION
        return cls.GENERIC_ERROR_SUPPORTED if version == 4 else cls.DEFAULT_ERROR


class TransactionVerifier(Protocol):
    """Asks the coordinator; mirrors `AddPartitionsToTxnManager`."""

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        topic_partitions: Collection[TopicPartition],
        on_result: Callable[[Mapping[TopicPartition, ErrorCode]], object],
        *,
        adds: bool,
    ) -> None:
        """Ask whether the partitions are part of the producer's ongoing transaction.

        With `adds` they become part of it. `on_result(errors)` is called once, now or later; a
        partition without an entry has no error.
        """
