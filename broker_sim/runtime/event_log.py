"""Events of a cluster: loggers that cost nothing where nobody listens.

Each room of the package has one logger, such as `broker_sim.replica`; `bind` adds the node that
speaks and the clock that it lives by. As for every library, `logging` decides what is shown: warnings
and errors on stderr, unless the program says otherwise:

    logging.getLogger("broker_sim").setLevel("INFO")    # what Kafka's own log would say
    logging.getLogger("broker_sim.replica").setLevel("DEBUG")

A program that has configured structlog gets the events through that; else they are records of
`logging`, with the node's time, which may be virtual. structlog is not imported here: that takes
longer than a cluster takes to start.

    error      something is lost: a trace, the control port, room for records
    warning    a user should know: refused clients, configurations without effect
    info       what changed: brokers, leaders, ISRs, topics, configurations
    debug      how it came about
"""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker_sim_purgatory import Clock

EVENT_ATTRIBUTE: Final = "broker_sim_event"
"""The attribute of a log record that has the event's name and values, for formatters."""
_ROOM_DEPTH: Final = 2


def get_logger(module: str) -> EventLogger:
    """Return the logger of the room that the module (`__name__`) is in."""
    return EventLogger(logging.getLogger(".".join(module.split(".")[:_ROOM_DEPTH])))


class EventLogger:
    """Logs events with values. Thread rule: any thread."""

    __slots__ = ("_bound", "_clock", "_logger")

    def __init__(
        self, logger: logging.Logger, clock: Clock | None = None, bound: Mapping[str, object] | None = None
    ) -> None:
        self._logger = logger
        self._clock = clock
        self._bound = bound or {}

    def bind(self, clock: Clock | None = None, **values: object) -> EventLogger:
        """Return a logger whose events have these values too, and the time of that clock."""
        return EventLogger(self._logger, clock or self._clock, {**self._bound, **values})

    @property
    def is_enabled_for_info(self) -> bool:
        """Whether events of the level info are shown; ask before work that only they need."""
        return self._logger.isEnabledFor(logging.INFO)

    def debug(self, event: str, **values: object) -> None:
        """Log how something came about."""
        self._log(logging.DEBUG, event, values)

    def info(self, event: str, **values: object) -> None:
        """Log what changed."""
        self._log(logging.INFO, event, values)

    def warning(self, event: str, **values: object) -> None:
        """Log what a user should know."""
        self._log(logging.WARNING, event, values)

    def error(self, event: str, **values: object) -> None:
        """Log that something is lost."""
        self._log(logging.ERROR, event, values)

    def _log(self, level: int, event: str, values: dict[str, object]) -> None:
        logger = self._logger
        if not logger.isEnabledFor(level):
            return
        values = {**self._bound, **values}
        structlog = sys.modules.get("structlog")
        # Another thread may be importing it, and then it has nothing yet.
        is_configured = getattr(structlog, "is_configured", None)
        if structlog is not None and is_configured is not None and is_configured():
            if self._clock is not None:
                values["timestamp"] = _iso(self._clock.wall_clock_ms() / 1000)
            structlog.get_logger(logger.name).log(level, event, logger=logger.name, **values)
            return
        record = logger.makeRecord(logger.name, level, logger.name, 0, _text(event, values), (), None, event)
        if self._clock is not None:
            _set_time(record, self._clock.wall_clock_ms())
        setattr(record, EVENT_ATTRIBUTE, {**values, "event": event})
        logger.handle(record)


def _text(event: str, values: dict[str, Any]) -> str:
    return " ".join((event, *(f"{key}={value!r}" for key, value in values.items())))


def _set_time(record: logging.LogRecord, wall_clock_ms: int) -> None:
    record.created = wall_clock_ms / 1000
    record.msecs = float(wall_clock_ms % 1000)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Disable all logging inside: faults make warnings by the thousand that nobody reads."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
