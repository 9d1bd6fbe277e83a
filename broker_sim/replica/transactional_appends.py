"""Transactional appends, which the transaction coordinator must verify first (KIP-890).

Mirrors `ReplicaManager.handleProduceAppend` and `maybeSendPartitionsToTransactionCoordinator`: the
first batch of a producer's transaction in a partition waits until the coordinator has answered. For
later batches the log itself knows that the transaction is ongoing, and no request is sent.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import batch_of
from broker_sim.protocol.record_batch import NO_PRODUCER_ID, TRANSACTIONAL_FLAG, parse_header
from broker_sim.protocol.special_values import NO_EPOCH
from broker_sim.replica.delayed_produce import ProducePartitionStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.log import Appendable, ProducerStateManagerConfig, VerificationGuard
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.add_partitions_to_txn_manager import (
        AddPartitionsToTxnManager,
        TransactionSupportedOperation,
    )
    from broker_sim.replica.replica_manager import ProduceCallback, ReplicaManager
    from broker_sim.runtime.action_queue import ActionQueue

    Errors = Mapping[TopicPartition, ErrorCode]
    Guards = Mapping[TopicPartition, VerificationGuard]
    OnVerified = Callable[[Errors, Guards], object]

UNREACHABLE: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors that older clients do not retry; they get NOT_ENOUGH_REPLICAS instead."""


class TransactionalProducer(NamedTuple):
    """A producer that appends to a transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class TransactionalAppends:
    """Verifies transactions and appends their records. Thread rule: the broker's loop."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        verifier: AddPartitionsToTxnManager,
        actions: ActionQueue,
        config: BrokerConfig,
        producers: ProducerStateManagerConfig,
        *,
        clock: Clock,
        call_later: Callable[[int, Callable[[], None]], object],
    ) -> None:
        self._replica_manager = replica_manager
        self._verifier = verifier
        self._clock = clock
        self._call_later = call_later
        self._actions = actions
        self._producers = producers
        self._retry_backoff_ms = config.add_partitions_to_txn_retry_backoff_ms
        self._retry_timeout_ms = min(config.add_partitions_to_txn_retry_backoff_max_ms, config.request_timeout_ms)

    def append(
        self,
        entries: Mapping[TopicPartition, Appendable],
        transactional_id: str,
        operation: TransactionSupportedOperation,
        response_callback: ProduceCallback,
        *,
        timeout_ms: int,
        required_acks: int,
        client_id: str | None = None,
    ) -> None:
        """Append like `ReplicaManager.append_records`, once the transaction coordinator has verified the partitions.

        A partition that the coordinator refuses gets an error status; the others are appended. Raises
        `ApiError` INVALID_PRODUCER_ID_MAPPING for batches of more than one producer.
        """
        sequences: dict[TopicPartition, int] = {}
        producers: set[tuple[int, int]] = set()
        for topic_partition, records in entries.items():
            header = parse_header(batch_of(records))
            if header.attributes & TRANSACTIONAL_FLAG and header.producer_id > NO_PRODUCER_ID:
                sequences[topic_partition] = header.base_sequence
                producers.add((header.producer_id, header.producer_epoch))
        if len(producers) > 1:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
            )

        def on_verified(errors: Errors, guards: Guards) -> None:
            verified, on_appended = entries, response_callback
            if errors:
                refused = {key: _refusal(code, operation) for key, code in errors.items()}
                verified = {key: entries[key] for key in entries if key not in refused}

                def on_appended(statuses: dict[TopicPartition, ProducePartitionStatus]) -> None:
                    response_callback({**refused, **statuses})

            self._replica_manager.append_records(
                verified,
                on_appended,
                timeout_ms=timeout_ms,
                required_acks=required_acks,
                client_id=client_id,
                verification_guards=guards,
            )

        append = partial(self._actions.serve, on_verified)
        if not producers:
            append({}, {})
            return
        producer = TransactionalProducer(transactional_id, *producers.pop())
        deadline_ms = self._clock.now_ms() + self._retry_timeout_ms
        self._verify_again(sequences, producer, operation, append, deadline_ms)

    def _verify_again(
        self,
        sequences: Mapping[TopicPartition, int],
        producer: TransactionalProducer,
        operation: TransactionSupportedOperation,
        on_verified: OnVerified,
        deadline_ms: int,
    ) -> None:
        """Verify; with transaction version 2, retry while the producer's previous transaction is still ending."""

        def maybe_retry(errors: Errors, guards: Guards) -> None:
            if (
                errors
                and operation.supports_epoch_bump
                and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
                and self._clock.now_ms() < deadline_ms
            ):
                self._call_later(
                    self._retry_backoff_ms,
                    lambda: self._verify_again(sequences, producer, operation, on_verified, deadline_ms),
                )
            else:
                on_verified(errors, guards)

        self.verify(sequences, producer, operation, maybe_retry)

    def verify(
        self,
        sequences: Mapping[TopicPartition, int],
        producer: TransactionalProducer,
        operation: TransactionSupportedOperation,
        on_verified: OnVerified,
    ) -> None:
        """Call `on_verified(errors, guards)`, now or when the coordinator has answered.

        `sequences` has the base sequence of each partition's batch. A partition without an error may be
        appended to, with its guard if it has one.
        """
        errors: dict[TopicPartition, ErrorCode] = {}
        guards: dict[TopicPartition, VerificationGuard] = {}
        supports_epoch_bump = operation.supports_epoch_bump
        if supports_epoch_bump or self._producers.transaction_verification_enabled:
            for topic_partition, sequence in sequences.items():
                try:
                    partition = self._replica_manager.get_partition(topic_partition)
                    log = partition.local_log(NO_EPOCH, require_leader=True)
                    guard = log.producer_state.maybe_start_verification(
                        producer.producer_id,
                        sequence,
                        producer.producer_epoch,
                        log.clock.wall_clock_ms(),
                        supports_epoch_bump=supports_epoch_bump,
                    )
                except ApiError as error:
                    errors[topic_partition] = error.error_code
                else:
                    if guard is not None:
                        guards[topic_partition] = guard
        if not guards:
            on_verified(errors, guards)
            return

        def on_result(results: Errors) -> None:
            if results:
                errors.update({key: code for key, code in results.items() if code})
            on_verified(errors, guards)

        self._verifier.verify(*producer, tuple(guards), on_result, adds=supports_epoch_bump)


def _refusal(error_code: ErrorCode, operation: TransactionSupportedOperation) -> ProducePartitionStatus:
    """Return the produce status of a partition that could not be verified."""
    if error_code is ErrorCode.TRANSACTION_ABORTABLE and operation is type(operation).DEFAULT_ERROR:
        error_code = ErrorCode.INVALID_TXN_STATE
    if error_code is ErrorCode.INVALID_TXN_STATE:
        return ProducePartitionStatus(error_code, error_message="Partition was not added to the transaction")
    if error_code in UNREACHABLE or (
        error_code is ErrorCode.CONCURRENT_TRANSACTIONS and not operation.supports_epoch_bump
    ):
        return ProducePartitionStatus(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            error_message="Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {error_code.name}",
        )
    return ProducePartitionStatus(error_code)
