"""Tells a failure: what did not hold, the faults that it needs, a test to paste, and a time line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker_sim.chaos.faults.as_test import as_test
from broker_sim.chaos.timeline import timeline_text

if TYPE_CHECKING:
    from broker_sim.chaos.run import Outcome


@dataclass(frozen=True, slots=True)
class Failure:
    """A seed whose run failed, and the smallest schedule that fails in the same way."""

    test: str
    """`module:function`."""
    first: Outcome
    """The run as it was drawn."""
    small: Outcome
    """The run of the smallest schedule, observed."""
    tries: int
    """How many runs it took to find that."""
    repeats: bool
    """Whether the smallest schedule took the same course a second time."""

    @property
    def seed(self) -> int:
        """The seed that failed."""
        return self.first.schedule.seed

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the faults that it needs."""
        return tuple(sorted({action.kind for action in self.small.schedule.actions}))

    def to_json(self) -> dict[str, Any]:
        """Return plain values, for tools."""
        return {
            "test": self.test,
            "seed": self.seed,
            "invariant": self.small.invariant,
            "error": self.small.text,
            "faults": len(self.first.schedule.actions),
            "deviations": len(self.first.deviations),
            "schedule": str(self.small.schedule).splitlines(),
            "tries": self.tries,
            "digest": self.small.digest,
            "repeats": self.repeats,
            "repairs": list(self.small.repairs),
            "virtual_s": self.small.virtual_s,
            "timeline": [moment._asdict() for moment in self.small.moments],
        }

    def __str__(self) -> str:
        small = self.small
        course = "repeats" if self.repeats else "DOES NOT REPEAT: see docs/chaos.md"
        return "\n".join(
            (
                f"{self.test}: seed {self.seed} fails",
                f"  {small.text}",
                f"{shrunk_text(self.first, small)}, in {self.tries} runs",
                f"{small.virtual_s:.3f} s of virtual time, trace {small.digest[:16]}, {course}",
                *repairs_text(small.repairs),
                "",
                timeline_text(small.moments),
                "",
                _as_test(self.test, small),
            )
        )


def shrunk_text(first: Outcome, small: Outcome) -> str:
    """Return how many faults, and deviations of the order, there were and are left."""
    before, after = len(first.schedule.actions), len(small.schedule.actions)
    if not first.deviations:
        return f"{before} faults -> {after}"
    deviations = f"{_counted(len(first.deviations), 'deviation')} from first in, first out"
    left = _counted(len(small.deviations), "deviation")
    if not before:
        return f"{deviations} -> {left}"
    return f"{_counted(before, 'fault')} and {deviations} -> {_counted(after, 'fault')}, {left}"


def _counted(count: int, what: str) -> str:
    number = f"{count:,}".replace(",", " ")
    return f"{number} {what}{'s' if count != 1 else ''}"


def repairs_text(repairs: tuple[str, ...]) -> list[str]:
    """Return lines that tell what of a client was repaired for a run; none if nothing was."""
    return [f"aiokafka is repaired for this run: {'; '.join(repairs)}"] if repairs else []


def _as_test(test: str, small: Outcome) -> str:
    """Return a test with the schedule of this run, to paste."""
    repaired = ", repair_aiokafka=True" if small.repairs else ""
    module, _, function = test.partition(":")
    return as_test(
        small.schedule,
        small.invariant or "",
        f"from broker_sim.chaos import Schedule, run_chaos\nfrom {module} import {function}",
        f"outcome = run_chaos({function}, schedule{repaired})\nif outcome.error is not None:\n    raise outcome.error",
    )
