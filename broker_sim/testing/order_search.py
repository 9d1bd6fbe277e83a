"""Finds the fewest deviations from first in, first out with which a seeded test still fails."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.chaos import Outcome, Schedule
from broker_sim.chaos.chaos import invariant_of
from broker_sim.chaos.faults.shrink import shrink
from broker_sim.chaos.report import shrunk_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest

    from broker_sim.runtime.virtual.task_order import Deviation
    from broker_sim.testing.seeded_run import SeededRun


class EndedTest(NamedTuple):
    """A finished run of a test, with its first error."""

    run: SeededRun
    seed: int
    error: BaseException | None


def shrink_order(
    first: EndedTest,
    reports: list[pytest.TestReport],
    run_once: Callable[[Sequence[Deviation]], tuple[EndedTest, list[pytest.TestReport]]],
) -> list[pytest.TestReport]:
    """Return the reports of the smallest run that fails as the first one did, with the order of its tasks.

    `run_once(deviations)` runs the test; it returns the finished run and the reports. If the first run did not deviate
    from first in, first out, or fails by the order of threads, its own `reports` are returned.
    """
    if first.error is None or not first.run.deviations:
        return reports
    seed = first.seed
    original = _outcome(Schedule(seed, duration_ms=0, order="seeded"), first)
    shrunk = shrink(original, lambda each: _outcome(each, run_once(each.deviations)[0]))
    if shrunk.schedule.order == "seeded":
        return reports
    again, reports = run_once(shrunk.schedule.deviations)
    small = _outcome(shrunk.schedule, again)
    course = "" if small.invariant == original.invariant else ", DOES NOT REPEAT"
    deviations = textwrap.indent("\n".join(map(str, shrunk.schedule.deviations)), " " * 4)
    text = "\n".join(
        (
            f"{shrunk_text(original, small)}, in {shrunk.tries} runs{course}",
            *again.run.orders,
            "",
            f"to run this alone, add this to the marker, and --virtual-seed={seed} to the command",
            f'deviations="""\n{deviations}\n"""',
        )
    )
    for report in reports:
        if report.failed:
            report.sections.append(("order of tasks", text))
    return reports


def _outcome(schedule: Schedule, test: EndedTest) -> Outcome:
    invariant = None if test.error is None else invariant_of(test.error)
    return Outcome(schedule, "", 0, (), invariant, test.error, deviations=test.run.deviations)
