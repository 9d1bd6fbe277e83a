"""InitProducerId (key 22), versions 0-6; mirrors `KafkaApis.handleInitProducerIdRequest`.

Behaviour:
* an idempotent producer (KIP-98) gets the next id of the block that the controller gave this broker
* the client gets COORDINATOR_LOAD_IN_PROGRESS, and retries, while the broker requests the next block
* a transactional producer gets the next epoch of its transactional id's producer id, which fences earlier
  producers; an open transaction is aborted first (CONCURRENT_TRANSACTIONS)
* a transaction of a producer with two-phase commits (KIP-939) never times out; the producer needs
  `transaction.two.phase.commit.enable` and the operation TWO_PHASE_COMMIT

Version notes: 2 is flexible, 3 can have the producer's id and epoch (KIP-360), 4 has PRODUCER_FENCED
instead of INVALID_PRODUCER_EPOCH. 6 can enable two-phase commits; it is served only with
`unstable.api.versions.enable`, and a prepared transaction cannot be kept (UNSUPPORTED_VERSION), as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.support.authorization import authorization_error, is_authorized, is_authorized_on_any
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from broker_sim.transaction.coordinator import ProducerIdAndEpoch

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext


def handle_init_producer_id(
    request: messages.InitProducerIdRequest,
    context: RequestContext,
    respond: Callable[[messages.InitProducerIdResponse], None],
) -> None:
    """Return a producer id and epoch, or an error."""

    def answer(error_code: ErrorCode, producer_id: int, producer_epoch: int) -> None:
        if error_code:
            respond(refuse(request, context, error_code))
        else:
            respond(messages.InitProducerIdResponse(producer_id=producer_id, producer_epoch=producer_epoch))

    denial = _denial(request, context)
    if denial:
        respond(refuse(request, context, denial))
        return
    names_id = request.producer_id != NO_PRODUCER_ID
    if names_id != (request.producer_epoch != NO_PRODUCER_EPOCH):
        respond(refuse(request, context, ErrorCode.INVALID_REQUEST))
    elif request.transactional_id is None:
        producer_id = context.broker.next_producer_id()
        if producer_id is None:
            respond(refuse(request, context, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        else:
            answer(ErrorCode.NONE, producer_id, 0)
    else:
        context.broker.transactions.init_producer_id(
            request.transactional_id,
            request.transaction_timeout_ms,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch) if names_id else None,
            answer,
            enable_2pc=request.enable2_pc,
            keep_prepared_txn=request.keep_prepared_txn,
        )


def _denial(request: messages.InitProducerIdRequest, context: RequestContext) -> ErrorCode:
    """Return the error for a client that may not have a producer id, else NONE.

    Without a transactional id, permission to write to any topic is enough (KIP-679).
    """
    write, cluster = AclOperation.WRITE, ResourceType.CLUSTER
    if request.transactional_id is not None:
        needs = (write, AclOperation.TWO_PHASE_COMMIT) if request.enable2_pc else (write,)
        of_id = ResourceType.TRANSACTIONAL_ID, request.transactional_id
        return next(filter(None, (authorization_error(context, each, *of_id) for each in needs)), ErrorCode.NONE)
    idempotent = AclOperation.IDEMPOTENT_WRITE
    if is_authorized(context, idempotent, cluster, CLUSTER_NAME, logs_denial=False):
        return ErrorCode.NONE
    if is_authorized_on_any(context, write, ResourceType.TOPIC):
        return ErrorCode.NONE
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
