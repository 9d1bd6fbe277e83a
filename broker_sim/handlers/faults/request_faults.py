"""The injected faults that hit one request; made by `FaultInjector.hit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults.error_answers import error_answer
from broker_sim.handlers.faults.targets import PARTITIONS, TOPICS
from broker_sim.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.handlers.context import RequestContext
    from broker_sim.handlers.faults.fault import Fault, Loss

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
"""Errors of a session, which answer the request as a whole even where partitions have errors."""
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
    def loss(self) -> Loss | None:
        """Whether the connection breaks before the handler, or in place of the response."""
        return self._faults[0].lose if self._faults else None

    @property
    def delay_ms(self) -> int:
        """Longest time in ms that the faults hold the response back."""
        return max((fault.delay_ms for fault in self._faults), default=0)

    @property
    def throttle_ms(self) -> int:
        """Longest time in ms that the faults mute the client after the response."""
        return max((fault.throttle_ms for fault in self._faults), default=0)

    def error_for(self, topic: str, partition: int = -1) -> ErrorCode:
        """Return the error that answers this partition, or this topic; NONE without one."""
        for fault in self._faults:
            if fault.names(topic, partition):
                return fault.error or ErrorCode.NONE
        return ErrorCode.NONE

    def answer(self, request: Any, context: RequestContext) -> Any:
        """Return what answers the request as a whole in place of its handler, None if the handler answers."""
        if self._answer is not None:
            return self._answer
        api, error = context.api_key, self._faults[0].error
        return error_answer(api, request, context.api_version, error) if error and _answers_all(api, error) else None


def _answers_all(api: ApiKey, error: ErrorCode) -> bool:
    """Whether the error answers the request, and not its topics or partitions."""
    if error in SESSION_ERRORS and api in SESSION_APIS:
        return True
    return api not in PARTITIONS and api not in TOPICS
