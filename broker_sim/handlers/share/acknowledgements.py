"""Acknowledgements, alone or in a share fetch; mirrors `KafkaApis.handleAcknowledgements` and its checks.

Partitions are answered in the order of the Scala maps in `KafkaApis`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.partition_errors import denied_or_injected_error
from broker_sim.hash_order.hash_codes import topic_id_partition_hash
from broker_sim.hash_order.scala_order import mutable_map_order, to_map_order
from broker_sim.metadata.topic_partition import TopicIdPartition
from broker_sim.share.partition.acknowledgement import AcknowledgementBatch
from broker_sim.share.partition.record_state import AcknowledgeType
from broker_sim.share.session.share_session import ShareSessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol import messages

    AcknowledgingRequest = messages.ShareFetchRequest | messages.ShareAcknowledgeRequest
    Errors = Mapping[TopicIdPartition, ApiError | None]

Answer = TypeVar("Answer")

RENEW_VERSION: Final = 2
"""First version of ShareFetch and of ShareAcknowledge in which members can renew locks (KIP-1222)."""

_ALL_TYPES: Final[frozenset[int]] = frozenset(AcknowledgeType)
_OLD_TYPES: Final = _ALL_TYPES - {AcknowledgeType.RENEW}


def named_partitions(
    request: AcknowledgingRequest, context: RequestContext
) -> list[tuple[TopicIdPartition, list[AcknowledgementBatch]]]:
    """Return the partitions of a request, with their acknowledgements."""
    names = context.broker.image.topic_names
    return [
        (
            TopicIdPartition(topic.topic_id, partition.partition_index, names.get(topic.topic_id)),
            [
                AcknowledgementBatch(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                for batch in partition.acknowledgement_batches
            ],
        )
        for topic in request.topics
        for partition in topic.partitions
    ]


def acknowledge(
    request: AcknowledgingRequest,
    context: RequestContext,
    acknowledged: Mapping[TopicIdPartition, Sequence[AcknowledgementBatch]],
    denied: AbstractSet[str],
    on_done: Callable[[Errors], object],
) -> None:
    """Acknowledge the partitions that are valid; `on_done` gets the errors of all once they are written.

    As in Kafka, partitions without acknowledgements are left out if no partition is valid. Raises
    FailedRequestError.
    """
    is_renewable = context.api_version >= RENEW_VERSION
    valid: dict[TopicIdPartition, Sequence[AcknowledgementBatch]] = {}
    others: dict[TopicIdPartition, ApiError | None] = {}
    for partition, batches in acknowledged.items():
        error_code = _error(request, context, partition, batches, denied, is_renewable)
        if error_code:
            others[partition] = ApiError(error_code)
        elif batches:
            valid[partition] = batches
    if not valid:
        on_done(in_mutable_map_order(others))
        return
    for partition, batches in acknowledged.items():
        if not batches and partition not in others:
            others[partition] = None
    key = ShareSessionKey(request.group_id or "", request.member_id or "")
    context.broker.share_partitions.acknowledge(
        key, valid, lambda errors: on_done(in_to_map_order({**errors, **others}))
    )


def _error(
    request: AcknowledgingRequest,
    context: RequestContext,
    partition: TopicIdPartition,
    batches: Sequence[AcknowledgementBatch],
    denied: AbstractSet[str],
    is_renewable: bool,
) -> ErrorCode:
    """Return the error of a partition that cannot be acknowledged, NONE if it can."""
    if partition.topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    allowed = _ALL_TYPES if is_renewable and request.is_renew_ack else _OLD_TYPES
    end_of_last = -1
    for batch in batches:
        if batch.first_offset < end_of_last or not _is_valid(batch, allowed):
            return ErrorCode.INVALID_REQUEST
        end_of_last = batch.last_offset
    error_code = denied_or_injected_error(context, *partition.topic_partition, denied, acknowledges=True)
    if error_code:
        return error_code
    if context.broker.image.partition(partition.topic_partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _is_valid(batch: AcknowledgementBatch, allowed: frozenset[int]) -> bool:
    """Whether a batch has one type for all of its offsets, or one for each, and all types exist."""
    first_offset, last_offset, types = batch
    if first_offset > last_offset:
        return False
    if len(types) == 1:
        return types[0] in allowed
    return len(types) == last_offset - first_offset + 1 and allowed.issuperset(types)


def in_mutable_map_order(answers: Mapping[TopicIdPartition, Answer]) -> dict[TopicIdPartition, Answer]:
    """Return answers in the order of a mutable Scala map, which Kafka uses if all partitions are refused."""
    return {partition: answers[partition] for partition in mutable_map_order(answers, _hash)}


def in_to_map_order(answers: Mapping[TopicIdPartition, Answer]) -> dict[TopicIdPartition, Answer]:
    """Return answers in the order of an immutable Scala map."""
    return {partition: answers[partition] for partition in to_map_order(answers, _hash)}


def _hash(partition: TopicIdPartition) -> int:
    return topic_id_partition_hash(*partition)
