"""The report of a failure: the violated invariant, the faults that it needs, a time line, and a test to paste."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from broker_sim.chaos.aiokafka_repairs import REPAIRS
from broker_sim.chaos.timeline import HOW_TO_SEE_ALL, MAX_LINES, as_json, timeline_text

if TYPE_CHECKING:
    from broker_sim.chaos.faults.schedule import FaultSchedule
    from broker_sim.chaos.run import Outcome
    from broker_sim.chaos.settings import Settings


class PythonCode(NamedTuple):
    """A function as Python code."""

    imports: str
    """Lines that import `Schedule`, `run_chaos` and everything the expression needs."""
    function: str
    """An expression."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A seed whose run failed, and the smallest schedule that fails in the same way."""

    test: str
    """`module:function`, the command of the workers, or the test's name in pytest."""
    code: PythonCode
    settings: Settings
    first: Outcome
    """The original run."""
    small: Outcome
    """The observed run of the smallest schedule."""
    tries: int
    """Number of runs needed to find the smallest schedule."""
    repeats: bool
    """Whether a second run of the smallest schedule was the same."""
    bugs_of_aiokafka: tuple[str, ...] = ()
    """Names of repairs of aiokafka, each of which alone makes the run pass; all, if only all together do."""

    @property
    def seed(self) -> int:
        """The seed that failed."""
        return self.first.schedule.seed

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the faults in the smallest schedule."""
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
            "bugs_of_aiokafka": list(self.bugs_of_aiokafka),
            "ran_on": self.small.ran_on,
            "repairs": list(self.small.repairs),
            "virtual_s": self.small.virtual_s,
            "timeline": as_json(self.small.moments),
        }

    def __str__(self) -> str:
        return self.text()

    def text(self, *, is_full: bool = False) -> str:
        """Return the report; with `is_full` the time line is complete."""
        head = (
            f"{self.test}: seed {self.seed} fails",
            f"  {self.small.text}",
            f"{shrunk_text(self.first, self.small)}, in {self.tries} runs",
        )
        return "\n".join((*head, self._course(HOW_TO_SEE_ALL, is_full=is_full), "", self.as_test()))

    def in_pytest(self, before: str, *, is_full: bool = False) -> str:
        """Return the report for pytest, which shows the error itself; `before` is a text on earlier runs."""
        head = (
            f"seed {self.seed}: {self.small.invariant}",
            f"{shrunk_text(self.first, self.small)}; {before}, {self.tries} runs to shrink it",
        )
        schedule = textwrap.indent(str(self.small.schedule), " " * 4)
        marker = ", ".join((*self.settings.as_arguments(), f'schedule="""\n{schedule}\n"""'))
        return "\n".join(
            (
                *head,
                self._course("pytest -vv shows them", is_full=is_full),
                "",
                "to run this alone, mark the test with",
                f"@pytest.mark.chaos({marker})",
            )
        )

    def _course(self, advice: str, *, is_full: bool) -> str:
        small = self.small
        course = "repeats" if self.repeats else "DOES NOT REPEAT: see docs/chaos/index.md"
        repairs = f"aiokafka is repaired for this run: {'; '.join(small.repairs)}\n" if small.repairs else ""
        ran_on = f"ran on {small.ran_on}\n" if small.ran_on else ""
        return (
            f"{self._whose_bug()}{small.virtual_s:.3f} s of virtual time, trace {small.digest[:16]}, {course}\n"
            f"{repairs}{ran_on}\n{timeline_text(small.moments, None if is_full else MAX_LINES, advice)}"
        )

    def _whose_bug(self) -> str:
        if not self.bugs_of_aiokafka:
            return ""
        bugs = "".join(
            f"  {REPAIRS[name]} (examples/aiokafka_bugs/{name}.py shows the bug on a real Kafka)\n"
            for name in self.bugs_of_aiokafka
        )
        which = "this" if len(self.bugs_of_aiokafka) == 1 else "one of these or all"
        return (
            f"this is a bug of aiokafka: it passes, and the seed as drawn too, when aiokafka is repaired in {which}:\n"
            f"{bugs}to look for bugs of the application go on with repair_aiokafka=True (--repair-aiokafka)\n"
        )

    def as_test(self) -> str:
        """Return the source of a test that runs the smallest schedule, to paste; it imports only that test."""
        arguments = (self.code.function, "schedule", *self.settings.as_arguments())
        call = f"run_chaos({', '.join(arguments)})"
        return as_test(
            self.small.schedule,
            self.small.invariant or "",
            self.code.imports,
            f"outcome = {call}\nif outcome.error is not None:\n    raise outcome.error",
        )


def as_test(schedule: FaultSchedule, invariant: str, imports: str, run: str) -> str:
    """Return the source of a runnable test to paste; its last lines are `run`."""
    return (
        f"{imports}\n\n\n"
        f"def test_seed_{schedule.seed}():\n"
        f'    """It failed: {invariant}."""\n'
        f'    schedule = Schedule.parse("""\n{textwrap.indent(str(schedule), " " * 8)}\n    """)\n'
        f"{textwrap.indent(run, ' ' * 4)}\n"
    )


def shrunk_text(first: Outcome, small: Outcome) -> str:
    """Return a text with the number of faults and order deviations before and after shrinking."""
    before, after = len(first.schedule.actions), len(small.schedule.actions)
    if not first.deviations:
        return f"{_counted(before, 'fault')} -> {after}{'' if after else ' (it fails without any)'}"
    deviations = f"{_counted(len(first.deviations), 'deviation')} from first in, first out"
    is_seeded = small.schedule.order == "seeded"
    size = "the seeded order" if is_seeded else _counted(len(small.deviations), "deviation")
    if not before:
        return f"{deviations} -> {size}"
    return f"{_counted(before, 'fault')} and {deviations} -> {_counted(after, 'fault')}, {size}"


def _counted(count: int, what: str) -> str:
    number = f"{count:,}".replace(",", " ")
    return f"{number} {what}{'s' if count != 1 else ''}"
