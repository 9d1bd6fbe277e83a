"""Checks of the heartbeats of all kinds; mirrors `throwIfEmptyString` of Kafka's `Utils`."""

from __future__ import annotations

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.java_text import java_trim


def check_text(text: str | None, message: str) -> None:
    """Raise `ApiError` INVALID_REQUEST for a text that is empty once it is trimmed; None is right."""
    if text is not None and not java_trim(text):
        raise invalid_request(message)


def invalid_request(message: str) -> ApiError:
    """Return the error of a request that makes no sense."""
    return ApiError(ErrorCode.INVALID_REQUEST, message)
