"""What a scenario observes: one observation per step and attempt, with its class of timing.

An observation says when its response was due: at once, at a timeout, or on an event. Its lateness
(elapsed minus due) has to lie in the window of its timing, on each side separately.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "COMPARED_FIELDS",
    "UNTIMED",
    "Observation",
    "Timing",
    "TimingClass",
    "at_once",
    "at_timeout",
    "on_event",
]

AT_ONCE_LATE_MS: Final = 480.0
"""A busy machine with two cores now and then stops a Java process for almost this long. Where a
response at once could be confused with one at a timeout, the timeout is 500 ms or more."""
TIMEOUT_EARLY_MS: Final = 2.0
"""Kafka's timers count whole milliseconds."""
TIMEOUT_LATE_MS: Final = 400.0
EVENT_EARLY_MS: Final = 200.0
"""The response may arrive before that of the request that caused it, on a busy machine so much."""
EVENT_LATE_MS: Final = 400.0
"""These windows separate one reason for a response from another. How late the sides are is judged
by the distributions of their lateness."""

COMPARED_FIELDS: Final = ("error_code", "base_offset", "high_watermark", "records", "bytes")


class TimingClass(StrEnum):
    """What a response waited for."""

    AT_ONCE = "at_once"
    AT_TIMEOUT = "at_timeout"
    ON_EVENT = "on_event"
    UNTIMED = "untimed"


@dataclass(frozen=True, slots=True)
class Timing:
    """When a response is due, in ms after its request, and how far it may be off."""

    kind: TimingClass
    due_ms: float = 0.0
    early_ms: float = 0.0
    late_ms: float = 0.0

    def holds(self, elapsed_ms: float) -> bool:
        """Tell whether a response after `elapsed_ms` came when it was due."""
        if self.kind is TimingClass.UNTIMED:
            return True
        return -self.early_ms <= elapsed_ms - self.due_ms <= self.late_ms

    def __str__(self) -> str:
        match self.kind:
            case TimingClass.UNTIMED:
                return "any time"
            case TimingClass.AT_ONCE:
                return f"at once (+{self.late_ms:g} ms)"
            case TimingClass.AT_TIMEOUT:
                return f"at {self.due_ms:g} ms (-{self.early_ms:g} +{self.late_ms:g} ms)"
            case TimingClass.ON_EVENT:
                return f"on event (-{self.early_ms:g} +{self.late_ms:g} ms)"


UNTIMED: Final = Timing(TimingClass.UNTIMED)


def at_once(late_ms: float = AT_ONCE_LATE_MS) -> Timing:
    """Answered without waiting for anything."""
    return Timing(TimingClass.AT_ONCE, late_ms=late_ms)


def at_timeout(
    timeout_ms: float, *, early_ms: float = TIMEOUT_EARLY_MS, late_ms: float = TIMEOUT_LATE_MS
) -> Timing:
    """Answered when the timeout of the request is over, not before."""
    return Timing(TimingClass.AT_TIMEOUT, due_ms=timeout_ms, early_ms=early_ms, late_ms=late_ms)


def on_event(
    due_ms: float, *, early_ms: float = EVENT_EARLY_MS, late_ms: float = EVENT_LATE_MS
) -> Timing:
    """Answered because of something that happened `due_ms` after the request."""
    return Timing(TimingClass.ON_EVENT, due_ms=due_ms, early_ms=early_ms, late_ms=late_ms)


@dataclass(frozen=True, slots=True)
class Observation:
    """What one step of a scenario observed; `None` where it has no such value.

    `fields` are further values, by name; like `error_code` to `bytes` they must be equal on both
    sides.
    """

    step: str
    error_code: int | None = None
    base_offset: int | None = None
    high_watermark: int | None = None
    records: int | None = None
    bytes: int | None = None
    elapsed_ms: float = 0.0
    timing: Timing = UNTIMED
    attempt: int = 1
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lateness_ms(self) -> float:
        """How long after it was due the response came; negative when it was early."""
        return self.elapsed_ms - self.timing.due_ms

    def exact(self) -> dict[str, Any]:
        """Return all that has to be equal on both sides, by field name."""
        return {name: getattr(self, name) for name in COMPARED_FIELDS} | dict(self.fields)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; `from_json` reads them."""
        return {
            "step": self.step,
            "attempt": self.attempt,
            **{name: getattr(self, name) for name in COMPARED_FIELDS},
            "elapsed_ms": round(self.elapsed_ms, 3),
            "timing": self.timing.kind.value,
            "due_ms": round(self.timing.due_ms, 3),
            "early_ms": self.timing.early_ms,
            "late_ms": self.timing.late_ms,
            "fields": dict(self.fields),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the observation that `to_json` wrote; other keys are ignored."""
        timing = Timing(
            TimingClass(value["timing"]),
            due_ms=value["due_ms"],
            early_ms=value["early_ms"],
            late_ms=value["late_ms"],
        )
        return cls(
            step=value["step"],
            attempt=value["attempt"],
            **{name: value[name] for name in COMPARED_FIELDS},
            elapsed_ms=value["elapsed_ms"],
            timing=timing,
            fields=value["fields"],
        )
