"""AddOffsetsToTxn (key 25), versions 0-4; mirrors `KafkaApis.handleAddOffsetsToTxnRequest`.

Behaviour: adds the group's partition of `__consumer_offsets` to the transaction.

Version notes: 2 has PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH, 3 is flexible, 4 has
TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.transaction.coordinator import ProducerIdAndEpoch
from broker_sim.transaction.state import TransactionVersion

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ErrorCode
    from broker_sim.handlers.context import RequestContext


def handle_add_offsets_to_txn(
    request: messages.AddOffsetsToTxnRequest,
    context: RequestContext,
    respond: Callable[[messages.AddOffsetsToTxnResponse], None],
) -> None:
    """Add the group's partition to the producer's transaction."""

    def answer(error_code: ErrorCode) -> None:
        respond(refuse(request, context, error_code) if error_code else messages.AddOffsetsToTxnResponse())

    denial = authorization_error(
        context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    ) or authorization_error(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if denial:
        answer(denial)
        return
    broker = context.broker
    partition = broker.groups.partition_for(request.group_id)
    broker.transactions.add_partitions(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        [TopicPartition(GROUP_METADATA_TOPIC, partition)],
        TransactionVersion.TV_0,
        answer,
    )
