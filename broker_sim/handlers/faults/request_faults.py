"""The injected faults that hit one request; made by `FaultInjector.hit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults.error_answers import error_answer
from broker_sim.handlers.faults.fault import Loss
from broker_sim.handlers.faults.targets import PARTITIONS, TOPICS
from broker_sim.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.handlers.context import RequestContext, Respond
    from broker_sim.handlers.faults.fault import Fault

INJECTED = "injected fault"
SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
"""What is wrong with a session is the answer to the request as a whole, also where partitions have errors."""
SESSION_APIS: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE})


class RequestFaults:
    """At least one fault, in the order in which they were injected, or an answer.

    With `answer` the request is answered by that, after the longest delay of the faults.
    """

    __slots__ = ("_answer", "_faults")

    def __init__(self, faults: Sequence[Fault], answer: Any = None) -> None:
        self._faults = faults
        self._answer = answer

    @property
    def throttle_ms(self) -> int:
        """For how long the client is held up after the answer."""
        return max((fault.throttle_ms for fault in self._faults), default=0)

    def error_for(self, topic: str, partition: int = -1) -> ErrorCode:
        """Return the error that answers this partition, or this topic; NONE without one."""
        for fault in self._faults:
            if fault.names(topic, partition):
                return fault.error or ErrorCode.NONE
        return ErrorCode.NONE

    def admit(
        self, request: Any, context: RequestContext, respond: Respond, call_later: Callable[..., object]
    ) -> Respond | None:
        """Lose or delay the request as a whole, or answer it where its handler would not.

        Returns what the handler responds with, or None for a request that does not come to it.
        """
        first = self._faults[0] if self._faults else None
        loss = None if first is None else first.lose
        if loss is Loss.REQUEST:
            context.connection.close(INJECTED)
            return None
        if loss is Loss.RESPONSE:
            return lambda _: context.connection.close(INJECTED)
        delay_ms = max((fault.delay_ms for fault in self._faults), default=0)
        if delay_ms:
            respond = _delayed(respond, delay_ms, call_later)
        if self._answer is not None:
            respond(self._answer)
            return None
        api = context.api_key
        if first is not None and first.error and _answers_all(api, first.error):
            respond(error_answer(api, request, context.api_version, first.error))
            return None
        return respond


def _answers_all(api: ApiKey, error: ErrorCode) -> bool:
    """Whether the error answers the request, and not its topics or partitions."""
    if error in SESSION_ERRORS and api in SESSION_APIS:
        return True
    return api not in PARTITIONS and api not in TOPICS


def _delayed(respond: Respond, delay_ms: int, call_later: Callable[..., object]) -> Respond:
    def respond_later(message: Any) -> None:
        call_later(delay_ms, respond, message)

    return respond_later
