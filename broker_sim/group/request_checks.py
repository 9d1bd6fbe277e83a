"""Validation shared by all heartbeat APIs; mirrors `throwIfEmptyString` of Kafka's `Utils`."""

from __future__ import annotations

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.java_text import java_trim


def check_text(text: str | None, message: str) -> None:
    """Raise `ApiError` INVALID_REQUEST if the text is empty after trimming; None is valid."""
    if text is not None and not java_trim(text):
        raise invalid_request(message)


def invalid_request(message: str) -> ApiError:
    """Return an INVALID_REQUEST error with this message."""
    return ApiError(ErrorCode.INVALID_REQUEST, message)
