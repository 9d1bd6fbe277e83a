"""Verifies transactions that commit offsets, for a broker's groups; mirrors `CoordinatorPartitionWriter`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import NO_SEQUENCE
from broker_sim.replica import TransactionalProducer, TransactionSupportedOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.log import VerificationGuard
    from broker_sim.replica import TransactionalAppends


class TxnOffsetVerifier:
    """The `VerifyTransaction` of the groups; verifies as for a produce request."""

    def __init__(self, transactional_appends: TransactionalAppends) -> None:
        self._transactional_appends = transactional_appends

    def __call__(
        self,
        partition: int,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        api_version: int,
        on_result: Callable[[ErrorCode, VerificationGuard | None], object],
    ) -> None:
        """Verify one partition of `__consumer_offsets`; see `VerifyTransaction`."""
        key = TopicPartition(GROUP_METADATA_TOPIC, partition)

        def on_verified(
            errors: Mapping[TopicPartition, ErrorCode], guards: Mapping[TopicPartition, VerificationGuard]
        ) -> None:
            on_result(errors.get(key, ErrorCode.NONE), guards.get(key))

        self._transactional_appends.verify(
            {key: NO_SEQUENCE},
            TransactionalProducer(transactional_id, producer_id, producer_epoch),
            TransactionSupportedOperation.of_txn_offset_commit(api_version),
            on_verified,
        )
