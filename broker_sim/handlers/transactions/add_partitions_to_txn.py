"""AddPartitionsToTxn (key 24), versions 0-5; mirrors `KafkaApis.handleAddPartitionsToTxnRequest`.

Behaviour:
* clients send versions 0-3, for one transaction; brokers send 4 and 5, for many, to add or only to verify
* if a partition does not exist, the others of its transaction get OPERATION_NOT_ATTEMPTED
* answered once all transactions are done

Version notes: 2 has PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH, 3 is flexible, 4 is batched
(KIP-890), 5 is for transactions that each have their own epoch.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.error_table import error_of_version
from broker_sim.handlers.support.authorization import authorization_error, is_authorized_on_cluster, unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_name import is_internal_topic
from broker_sim.metadata.topic_partition import TopicPartition, by_topic
from broker_sim.protocol import messages
from broker_sim.transaction.coordinator import ProducerIdAndEpoch
from broker_sim.transaction.state import TransactionVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata import MetadataImage
    from broker_sim.transaction.coordinator import TransactionCoordinator

    Transaction = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
    OnErrors = Callable[[Mapping[TopicPartition, ErrorCode]], object]

BATCHED_VERSION: Final = 4

TransactionResult = messages.AddPartitionsToTxnResponse.AddPartitionsToTxnResult
TopicResult = messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
PartitionResult = messages.AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult


def handle_add_partitions_to_txn(
    request: messages.AddPartitionsToTxnRequest,
    context: RequestContext,
    respond: Callable[[messages.AddPartitionsToTxnResponse], None],
) -> None:
    """Add partitions to transactions, or verify that they are part of them."""
    broker = context.broker
    if context.api_version >= BATCHED_VERSION:
        if is_authorized_on_cluster(context, [AclOperation.CLUSTER_ACTION]):
            serve_transactions(request.transactions, broker.transactions, broker.image, respond)
        else:
            respond(refuse(request, context, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        return
    transaction = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )

    def answer(errors: Mapping[TopicPartition, ErrorCode]) -> None:
        errors_of_version = {
            partition: error_of_version(context.api_key, context.api_version, error_code)
            for partition, error_code in errors.items()
        }
        topics = _by_topic(errors_of_version)
        respond(messages.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics))

    denial = authorization_error(
        context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id
    )
    if denial:
        respond(refuse(request, context, denial))
        return
    names = (topic.name for topic in transaction.topics if not is_internal_topic(topic.name))
    denied = unauthorized_names(context, AclOperation.WRITE, ResourceType.TOPIC, names)
    version = TransactionVersion.TV_0
    _serve(transaction, version, broker.transactions, broker.image, answer, denied)


def serve_transactions(
    transactions: Sequence[Transaction],
    coordinator: TransactionCoordinator,
    image: MetadataImage,
    respond: Callable[[messages.AddPartitionsToTxnResponse], object],
) -> None:
    """Serve another broker's request or call over a link; without transactions, respond at once."""
    results: list[messages.AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = []

    def done(transactional_id: str, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        results.append(TransactionResult(transactional_id, _by_topic(errors)))
        if len(results) == len(transactions):
            respond(messages.AddPartitionsToTxnResponse(results_by_transaction=results))

    if not transactions:
        respond(messages.AddPartitionsToTxnResponse())
    for transaction in transactions:
        on_errors = partial(done, transaction.transactional_id)
        _serve(transaction, TransactionVersion.TV_2, coordinator, image, on_errors)


def _serve(
    transaction: Transaction,
    version: TransactionVersion,
    coordinator: TransactionCoordinator,
    image: MetadataImage,
    on_errors: OnErrors,
    denied: AbstractSet[str] = frozenset(),
) -> None:
    partitions = _partitions(transaction)
    unknown = [partition for partition in partitions if image.partition(partition) is None]
    refused = [partition for partition in partitions if partition.topic in denied]
    if unknown or refused:
        errors = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
        errors.update(dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        errors.update(dict.fromkeys(refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        on_errors(errors)
        return
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        on_errors(coordinator.verify_partitions(transaction.transactional_id, producer, partitions))
        return
    coordinator.add_partitions(
        transaction.transactional_id,
        producer,
        partitions,
        version,
        lambda error_code: on_errors(dict.fromkeys(partitions, error_code)),
    )


def _partitions(transaction: Transaction) -> list[TopicPartition]:
    return [TopicPartition(topic.name, partition) for topic in transaction.topics for partition in topic.partitions]


def _by_topic(
    errors: Mapping[TopicPartition, ErrorCode],
) -> list[messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]:
    topics = by_topic(
        (topic, PartitionResult(partition, error_code)) for (topic, partition), error_code in errors.items()
    )
    return [TopicResult(*entry) for entry in topics.items()]
