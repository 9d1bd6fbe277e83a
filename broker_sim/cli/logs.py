"""The log of a command: one line on stderr for each record of a level and above."""

from __future__ import annotations

import json
import logging
import re
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from broker_sim.runtime.event_log import EVENT_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Iterator

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("console", "json")
LEVEL_COLORS: Final = {"debug": "green", "info": "green", "warning": "yellow"}
"""Colors of levels on a terminal; those above are red."""
LEVEL_WIDTH: Final = 9
EVENT_WIDTH: Final = 30


@contextmanager
def logs_on_stderr(level: str, log_format: str = "console") -> Iterator[None]:
    """Send log records of `level` and above, also of asyncio and aiohttp, to stderr in the `with` block."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_EventFormatter(as_json=log_format == "json"))
    root = logging.getLogger()
    previous = root.level
    root.addHandler(handler)
    root.setLevel(level.upper())
    try:
        yield
    finally:
        root.setLevel(previous)
        root.removeHandler(handler)


class _EventFormatter(logging.Formatter):
    """Formats a record as a line for people, in colors on a terminal, or as a JSON object on one line."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json
        self._has_colors = sys.stderr.isatty()

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
        return json.dumps(event, default=str) if self._as_json else self._console_line(**event)

    def _console_line(
        self, timestamp: str, level: str, logger: str, event: str, exception: str = "", **values: object
    ) -> str:
        level = self._colored(f"{level:<{LEVEL_WIDTH}}", fg=LEVEL_COLORS.get(level, "red"), bold=True)
        event = self._colored(f"{event:<{EVENT_WIDTH}}", bold=True)
        line = [
            self._colored(timestamp, dim=True),
            f"[{level}]",
            event,
            f"[{self._colored(logger, fg='blue', bold=True)}]",
        ]
        line += [f"{self._colored(name, fg='cyan')}={_text(value)}" for name, value in values.items()]
        return " ".join(line) + (exception and f"\n{exception}")

    def _colored(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if self._has_colors else text


def _text(value: object) -> str:
    """Return a plain word as it is, and everything else as Python writes it."""
    return value if isinstance(value, str) and re.fullmatch(r"[^\s='\"]+", value) else repr(value)
