"""ListTransactions (key 66), versions 0-2; mirrors `TransactionStateManager.listTransactionStates`.

Behaviour:
* lists the transactional ids that this broker coordinates and that pass all filters
* ids that the client may not describe are left out
* unknown states in the filter are returned as such, and match nothing
* COORDINATOR_LOAD_IN_PROGRESS while a partition is being loaded
* a pattern that is slow to match is matched on another thread

Version notes: 1 filters by the duration of the transaction (KIP-994), 2 by a pattern for the whole id
(KIP-1152); an invalid pattern is INVALID_REGULAR_EXPRESSION.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.coordinator.patterns import compile_pattern, match_at_once_or_beside
from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import refuse
from broker_sim.handlers.support.authorization import is_authorized
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages
from broker_sim.regex.re2j import RegexError
from broker_sim.transaction.state import state_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.coordinator.patterns import Pattern
    from broker_sim.handlers.context import RequestContext
    from broker_sim.transaction.metadata import TransactionMetadata

State = messages.ListTransactionsResponse.TransactionState


def handle_list_transactions(
    request: messages.ListTransactionsRequest,
    context: RequestContext,
    respond: Callable[[messages.ListTransactionsResponse], None],
) -> None:
    """List the transactional ids of this broker."""
    states = context.broker.transactions.states
    if states.runtime.is_loading:
        respond(refuse(request, context, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        return
    try:
        pattern = _pattern(request)
    except RegexError:
        respond(refuse(request, context, ErrorCode.INVALID_REGULAR_EXPRESSION))
        return
    passes = _filter(request, context.broker.clock.wall_clock_ms())
    states_of_client = [
        State(metadata.transactional_id, metadata.producer_id, metadata.state.state_name)
        for metadata in states.each()
        if passes(metadata)
        and is_authorized(context, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, metadata.transactional_id)
    ]

    def answer(matching: list[State]) -> None:
        respond(
            messages.ListTransactionsResponse(
                unknown_state_filters=[
                    name for name in dict.fromkeys(request.state_filters) if state_named(name) is None
                ],
                transaction_states=matching,
            )
        )

    if pattern is None:
        answer(states_of_client)
        return
    match_at_once_or_beside(
        partial(_matching, pattern, states_of_client),
        answer,
        [pattern],
        [one.transactional_id for one in states_of_client],
        context.broker.run_beside,
    )


def _pattern(request: messages.ListTransactionsRequest) -> Pattern | None:
    """Return the pattern that ids have to match, if any. Raises `RegexError` for an invalid one."""
    text = request.transactional_id_pattern
    return compile_pattern(text) if text else None


def _matching(pattern: Pattern, transactions: Iterable[State]) -> list[State]:
    return [one for one in transactions if pattern.matches(one.transactional_id)]


def _filter(request: messages.ListTransactionsRequest, now_ms: int) -> Callable[[TransactionMetadata], bool]:
    """Return a predicate for all filters except the pattern."""
    states = {state_named(name) for name in request.state_filters}
    producer_ids = set(request.producer_id_filters)

    def passes(metadata: TransactionMetadata) -> bool:
        if producer_ids and metadata.producer_id not in producer_ids:
            return False
        if states and metadata.state not in states:
            return False
        duration_ms = now_ms - metadata.values.start_ms
        return not 0 <= request.duration_filter >= duration_ms

    return passes
