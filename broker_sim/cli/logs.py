"""The log of a command: one line on stderr for each record of a level and above."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.event_log import EVENT_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("console", "json")


@contextmanager
def logs_on_stderr(level: str, log_format: str = "console") -> Iterator[None]:
    """Send log records of `level` and above, also of asyncio and aiohttp, to stderr in the `with` block."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_StructlogFormatter(as_json=log_format == "json"))
    root = logging.getLogger()
    previous = root.level
    root.addHandler(handler)
    root.setLevel(level.upper())
    try:
        yield
    finally:
        root.setLevel(previous)
        root.removeHandler(handler)


class _StructlogFormatter(logging.Formatter):
    """Formats records by structlog's renderers, whose slow import waits for the first record."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    @cached_property
    def _render(self) -> Callable[..., Any]:
        import structlog  # noqa: PLC0415 - see above

        if self._as_json:
            return structlog.processors.JSONRenderer(default=str)
        return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), sort_keys=False)

    def format(self, record: logging.LogRecord) -> str:
        """Return one line; a traceback follows on the console, and is a value in JSON."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        event = {
            "timestamp": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            **getattr(record, EVENT_ATTRIBUTE, {"event": record.getMessage()}),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        try:
            return str(self._render(None, record.levelname.lower(), event))
        except (ImportError, OSError, AttributeError):
            # At the limit of open files structlog cannot be imported.
            return json.dumps(event, default=str)
