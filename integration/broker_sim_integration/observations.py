"""What a scenario observes: one observation per step and attempt, with its class of timing.

A timing says when a response is due: at once, at a timeout, or on an event. How far from that it
may arrive is not the scenario's to say: `broker_sim_integration.comparison.timeliness` judges it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

COMPARED_FIELDS: Final = ("error_code", "base_offset", "high_watermark", "records", "bytes")


class TimingClass(StrEnum):
    """What a response waited for."""

    AT_ONCE = "at_once"
    AT_TIMEOUT = "at_timeout"
    ON_EVENT = "on_event"
    UNTIMED = "untimed"


@dataclass(frozen=True, slots=True)
class Timing:
    """When a response is due, in ms after its request."""

    kind: TimingClass
    due_ms: float = 0.0
    earliest_ms: float = 0.0
    """Time at which its cause was sent: nothing can have caused it earlier."""
    spread_ms: float = 0.0
    """Delay after the due time that Kafka's own mechanism may add."""
    reason: str = ""
    """The mechanism, or the reason why the response is not timed."""

    def __str__(self) -> str:
        match self.kind:
            case TimingClass.UNTIMED:
                return "any time"
            case TimingClass.AT_ONCE:
                return "at once"
            case TimingClass.AT_TIMEOUT:
                return f"at {self.due_ms:g} ms"
            case TimingClass.ON_EVENT:
                spread = f" to {self.due_ms + self.spread_ms:.1f}" if self.spread_ms else ""
                return f"on an event at {self.due_ms:.1f}{spread} ms"


def at_once() -> Timing:
    """Answered without waiting for anything."""
    return Timing(TimingClass.AT_ONCE)


def at_timeout(timeout_ms: float) -> Timing:
    """Answered when the timeout of the request is over, never before."""
    return Timing(TimingClass.AT_TIMEOUT, due_ms=timeout_ms, earliest_ms=timeout_ms)


def on_event(due_ms: float, *, earliest_ms: float | None = None, spread_ms: float = 0.0, reason: str = "") -> Timing:
    """Answered because of something that happened `due_ms` after the request.

    `earliest_ms` is when that was sent, by default `due_ms`. `spread_ms` is a range that Kafka's own
    mechanism adds, and has a `reason`.
    """
    assert bool(spread_ms) <= bool(reason), "a spread has a reason"
    earliest_ms = due_ms if earliest_ms is None else earliest_ms
    return Timing(TimingClass.ON_EVENT, due_ms, earliest_ms, spread_ms, reason)


def untimed(reason: str) -> Timing:
    """Nothing is claimed about when it was answered, for a reason."""
    return Timing(TimingClass.UNTIMED, reason=reason)


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
    timing: Timing = field(kw_only=True)
    attempt: int = 1
    fields: Mapping[str, Any] = field(default_factory=dict)
    answered_ms: float | None = field(default=None, compare=False)
    """The moment of the answer (`now_ms`), if it is known; only this process understands it."""
    stalled_ms: float = 0.0
    """Time that the comparing process, or the simulator's, could not run while the answer was overdue."""

    @property
    def lateness_ms(self) -> float:
        """How long after it was due the response came; negative when it was early."""
        return self.elapsed_ms - self.timing.due_ms

    def excused(self, stalled_ms: Callable[[float, float], float]) -> Self:
        """Return it with what `stalled_ms` says of the time for which the answer was overdue, added."""
        if self.answered_ms is None:
            return self
        due_ms = self.answered_ms - self.lateness_ms
        added_ms = stalled_ms(due_ms, self.answered_ms)
        return replace(self, stalled_ms=self.stalled_ms + added_ms)

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
            "earliest_ms": round(self.timing.earliest_ms, 3),
            "spread_ms": round(self.timing.spread_ms, 3),
            "reason": self.timing.reason,
            "stalled_ms": round(self.stalled_ms, 3),
            "fields": dict(self.fields),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the observation that `to_json` wrote; other keys are ignored."""
        timing = Timing(
            TimingClass(value["timing"]),
            due_ms=value["due_ms"],
            earliest_ms=value["earliest_ms"],
            spread_ms=value["spread_ms"],
            reason=value["reason"],
        )
        return cls(
            step=value["step"],
            attempt=value["attempt"],
            **{name: value[name] for name in COMPARED_FIELDS},
            elapsed_ms=value["elapsed_ms"],
            timing=timing,
            fields=value["fields"],
            stalled_ms=value["stalled_ms"],
        )
