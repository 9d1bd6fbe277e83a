"""EndTxn (key 26), versions 0-5; mirrors `KafkaApis.handleEndTxnRequest`.

Behaviour:
* answered once the end of the transaction is written and replicated; the markers follow
* a repeated commit or abort succeeds again

Version notes: 2 has PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH, 3 is flexible, 4 has
TRANSACTION_ABORTABLE (KIP-890), 5 bumps the producer's epoch and returns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.error_table import error_of_version
from broker_sim.handlers.support.authorization import authorization_error
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages
from broker_sim.transaction.end_transaction import EndOfTransaction
from broker_sim.transaction.state import TransactionVersion

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ErrorCode
    from broker_sim.handlers.context import RequestContext

EPOCH_BUMP_VERSION: Final = 5


def handle_end_txn(
    request: messages.EndTxnRequest, context: RequestContext, respond: Callable[[messages.EndTxnResponse], None]
) -> None:
    """Commit or abort a transaction."""

    def answer(error_code: ErrorCode, producer_id: int, producer_epoch: int) -> None:
        error_code = error_of_version(context.api_key, context.api_version, error_code)
        respond(messages.EndTxnResponse(error_code=error_code, producer_id=producer_id, producer_epoch=producer_epoch))

    denial = authorization_error(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    if denial:
        respond(refuse(request, context, denial))
        return
    bumps_epoch = context.api_version >= EPOCH_BUMP_VERSION
    end = EndOfTransaction(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        TransactionVersion.TV_2 if bumps_epoch else TransactionVersion.TV_0,
    )
    context.broker.transactions.end_transaction(end, answer)
