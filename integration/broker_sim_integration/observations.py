"""The observations of a scenario: one per step and attempt, each with its class of timing.

A timing says when a response is due: at once, at a timeout, or on an event. The allowed deviation is
not part of it: `broker_sim_integration.comparison.timeliness` judges that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

COMPARED_FIELDS: Final = ("error_code", "base_offset", "high_watermark", "records", "bytes")


class TimingClass(StrEnum):
    """The kind of cause that makes a response due."""

    AT_ONCE = "at_once"
    AT_TIMEOUT = "at_timeout"
    ON_EVENT = "on_event"
    UNTIMED = "untimed"


@dataclass(frozen=True, slots=True)
class Timing:
    """The due time of a response, in ms after its request."""

    kind: TimingClass
    due_ms: float = 0.0
    earliest_ms: float = 0.0
    """Time at which the cause was sent: an earlier response cannot be its result."""
    spread_ms: float = 0.0
    """Delay after the due time that a mechanism of Kafka may add."""
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
    """Return the timing of a response that waits for nothing."""
    return Timing(TimingClass.AT_ONCE)


def at_timeout(timeout_ms: float) -> Timing:
    """Return the timing of a response that is due when the timeout of the request is over, never before."""
    return Timing(TimingClass.AT_TIMEOUT, due_ms=timeout_ms, earliest_ms=timeout_ms)


def on_event(due_ms: float, *, earliest_ms: float | None = None, spread_ms: float = 0.0, reason: str = "") -> Timing:
    """Return the timing of a response whose cause occurred `due_ms` after the request.

    `earliest_ms` is the time at which the cause was sent, by default `due_ms`. `spread_ms` is the delay that a
    mechanism of Kafka may add; it needs a `reason`.
    """
    assert bool(spread_ms) <= bool(reason), "a spread has a reason"
    earliest_ms = due_ms if earliest_ms is None else earliest_ms
    return Timing(TimingClass.ON_EVENT, due_ms, earliest_ms, spread_ms, reason)


def untimed(reason: str) -> Timing:
    """Return the timing of a response whose time is not judged, with the reason."""
    return Timing(TimingClass.UNTIMED, reason=reason)


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of one step of a scenario; `None` for values that the step does not have.

    `fields` are further values by name; like `error_code` to `bytes` they must be equal on both sides.
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
    """Time of the response (`now_ms`), if known; only valid in this process."""
    stalled_ms: float = 0.0
    """Time in ms for which the comparing process, or the simulator's, could not run while the response was overdue."""

    @property
    def lateness_ms(self) -> float:
        """Time in ms from the due time to the response; negative if it came early."""
        return self.elapsed_ms - self.timing.due_ms

    def excused(self, stalled_ms: Callable[[float, float], float]) -> Self:
        """Return a copy whose `stalled_ms` also counts `stalled_ms(due, response)`, the stall while it was overdue."""
        if self.answered_ms is None:
            return self
        due_ms = self.answered_ms - self.lateness_ms
        added_ms = stalled_ms(due_ms, self.answered_ms)
        return replace(self, stalled_ms=self.stalled_ms + added_ms)

    def exact(self) -> dict[str, Any]:
        """Return all values that must be equal on both sides, by field name."""
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
