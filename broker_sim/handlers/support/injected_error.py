"""The injected error of one partition or topic, or that it is denied, for handlers that ask for it in passing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext


def injected_error(context: RequestContext, topic: str, partition: int = -1) -> ErrorCode:
    """Return the error that an injected fault gives this partition, or this topic; NONE without."""
    faults = context.faults
    return ErrorCode.NONE if faults is None else faults.error_for(topic, partition)


def denied_or_injected_error(
    context: RequestContext, topic: str, partition: int, denied: AbstractSet[str]
) -> ErrorCode:
    """Return the error of a partition of one of the `denied` topics, or that of an injected fault."""
    if topic in denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return injected_error(context, topic, partition)


def raise_injected_error(context: RequestContext, topic: str, partition: int = -1) -> None:
    """Raise ApiError with the error that an injected fault gives this partition, or this topic."""
    error_code = injected_error(context, topic, partition)
    if error_code:
        raise ApiError(error_code)
