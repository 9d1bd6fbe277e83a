"""Events of a cluster: loggers that cost next to nothing while their level is disabled.

Each subpackage has one logger, such as `broker_sim.replica`; `bind` adds the node and its clock. As for
every library, `logging` decides what is shown: by default warnings and errors, on stderr. To see more:

    logging.getLogger("broker_sim").setLevel("INFO")    # what Kafka's own log would say
    logging.getLogger("broker_sim.replica").setLevel("DEBUG")

A program that has configured structlog gets the events through it; otherwise they are `logging` records
with the node's time, which may be virtual. structlog is not imported here: the import takes longer than
starting a cluster.

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
"""The attribute of a log record that holds the event's name and values, for formatters."""
_ROOM_DEPTH: Final = 2


def get_logger(module: str) -> EventLogger:
    """Return the logger of the subpackage that `module` (its `__name__`) is in."""
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
        """Return a logger that adds these values, and the clock's time, to its events."""
        return EventLogger(self._logger, clock or self._clock, {**self._bound, **values})

    @property
    def is_enabled_for_info(self) -> bool:
        """Whether info events are shown; check it before work that only they need."""
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
        # Another thread may still be importing the module, which is empty then.
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
    """Disable all logging inside: faults cause thousands of warnings that nobody reads."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
