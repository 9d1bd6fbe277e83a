"""Loggers that import structlog with their first event.

structlog's console renderer brings rich along: together they take longer to import than a cluster
takes to start, and most clusters in tests never log anything.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import FilteringBoundLogger

__all__ = ["configure_at_first_event", "get_logger"]

_configurations: list[Callable[[], None]] = []


def get_logger(name: str) -> FilteringBoundLogger:
    """Return a logger; it writes as structlog is configured, or through `logging` if it is not."""
    return cast("FilteringBoundLogger", _LazyLogger(name))


def configure_at_first_event(configure: Callable[[], None]) -> None:
    """Call `configure` before the next event is logged; it configures structlog."""
    _configurations.append(configure)


class _LazyLogger:
    """Has the methods of structlog's logger."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        import structlog  # noqa: PLC0415 - what this module is for

        while _configurations:
            _configurations.pop()()
        if structlog.is_configured():
            return getattr(structlog.get_logger(self._name), method)
        return getattr(_logging_logger(self._name), method)


@cache
def _logging_logger(name: str) -> Any:
    """Return a logger that leaves it to `logging` what is shown: warnings, on stderr, unless set."""
    import structlog  # noqa: PLC0415 - as above

    return structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
