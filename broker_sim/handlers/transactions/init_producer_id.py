"""InitProducerId (key 22), versions 0-5; mirrors `TransactionCoordinator.handleInitProducerId`.

Behaviour:
* an idempotent producer (KIP-98) gets the next id of the block that the controller gave this broker
* COORDINATOR_LOAD_IN_PROGRESS tells the client to ask again while the next block is on its way

Version notes: 2 is flexible, 3 can name the producer's id and epoch (KIP-360), 4 has PRODUCER_FENCED.

Left out: transactions. A request with a transactional id is answered with NOT_COORDINATOR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_init_producer_id"]

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


def handle_init_producer_id(
    request: messages.InitProducerIdRequest,
    context: RequestContext,
    respond: Callable[[messages.InitProducerIdResponse], None],
) -> None:
    """Answer with a new producer id, or say why not."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        respond(_failed(ErrorCode.INVALID_REQUEST))
    elif request.transactional_id is not None:
        known = bool(request.transactional_id)
        respond(_failed(ErrorCode.NOT_COORDINATOR if known else ErrorCode.INVALID_REQUEST))
    else:
        producer_id = context.broker.producer_ids.next_id()
        if producer_id is None:
            respond(_failed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        else:
            respond(messages.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))


def _failed(error_code: ErrorCode) -> messages.InitProducerIdResponse:
    return messages.InitProducerIdResponse(
        error_code=error_code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
