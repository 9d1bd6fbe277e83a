"""Where the cluster's log events go: one line each on stderr, from a level on."""

from __future__ import annotations

import logging
import sys

from broker_sim.runtime.event_log import configure_at_first_event

__all__ = ["LEVELS", "configure_logs"]

LEVELS = ("debug", "info", "warning", "error")


def configure_logs(level: str) -> None:
    """Send events of `level` and above to stderr; in colour if that is a terminal."""
    # For the log records of asyncio and aiohttp.
    logging.basicConfig(level=level.upper(), stream=sys.stderr, format="%(levelname)s %(message)s")
    configure_at_first_event(lambda: _configure_structlog(level))


def _configure_structlog(level: str) -> None:
    import structlog  # noqa: PLC0415 - see event_log

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper("iso"),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
