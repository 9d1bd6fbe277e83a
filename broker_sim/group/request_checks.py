"""What heartbeats of all kinds of groups are checked for; mirrors the checks of `Utils`."""

from __future__ import annotations

from broker_sim.errors import ApiError, ErrorCode

__all__ = ["check_text", "invalid_request"]


def check_text(text: str | None, message: str) -> None:
    """Raise `ApiError` INVALID_REQUEST for a text without any visible character; None is none."""
    if text is not None and not text.strip():
        raise invalid_request(message)


def invalid_request(message: str) -> ApiError:
    """Return the error of a request that makes no sense."""
    return ApiError(ErrorCode.INVALID_REQUEST, message)
