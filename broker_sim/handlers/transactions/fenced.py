"""What a fenced producer is told: clients of before KIP-588 do not know PRODUCER_FENCED."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode

if TYPE_CHECKING:
    from broker_sim.handlers.context import RequestContext


def error_of_version(error_code: ErrorCode, context: RequestContext, first_version: int) -> ErrorCode:
    """Return the error, or INVALID_PRODUCER_EPOCH for PRODUCER_FENCED before `first_version`."""
    if error_code is ErrorCode.PRODUCER_FENCED and context.api_version < first_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error_code
