"""Tests with the marker `chaos`: many seeds, and what fails is shrunk and told."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from broker_sim.chaos import Schedule, ScheduleError, draw_schedule
from broker_sim.chaos.chaos import invariant_of
from broker_sim.chaos.kinds import weights_of
from broker_sim.chaos.report import repairs_text
from broker_sim.chaos.run import ChaosRun
from broker_sim.chaos.shrink import shrink
from broker_sim.chaos.timeline import timeline_text
from broker_sim.runtime.virtual.loop import Order
from broker_sim.testing.options import BadOptionError, ClusterOptions, check_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pytest

__all__ = ["Attempt", "ChaosOptions", "ChaosSearch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosOptions(ClusterOptions):
    """The checked arguments of one marker `chaos`. Raises BadOptionError."""

    seeds: int = 20
    """The test runs with the seeds 0 to `seeds` - 1."""
    workers: int = 2
    """So many the test starts; faults hit them."""
    duration_s: float = 20
    """How long faults happen."""
    faults: Iterable[str] | Mapping[str, float] | None = None
    """Kinds, or kinds with weights; None are all."""
    order: Order = "fifo"
    repair_aiokafka: bool = False
    """Mend bugs of that client for the test, on which correct applications fail."""
    schedule: str | None = None
    """The only schedule, as a report has printed it."""

    def check(self) -> None:
        """Raise BadOptionError for what no run can have."""
        ClusterOptions.check(self)  # a class with slots is made anew, which `super()` does not know
        check_count("seeds", self.seeds)
        check_count("workers", self.workers)
        if not isinstance(self.duration_s, int | float) or self.duration_s < 1:
            raise BadOptionError(f"duration_s={self.duration_s!r}: give seconds, at least 1")
        if self.order not in get_args(Order):
            raise BadOptionError(f"order={self.order!r}: choose 'fifo' or 'seeded'")
        try:
            weights_of(self.faults)
            if self.schedule is not None:
                Schedule.parse(self.schedule)
        except ScheduleError as error:
            raise BadOptionError(f"schedule: {error}") from error
        except (TypeError, ValueError) as error:
            raise BadOptionError(f"faults={self.faults!r}: {error}") from error

    def schedules(self, seeds: Iterable[int] | None) -> Iterable[Schedule]:
        """Yield the schedules of these seeds, or of the marker's own."""
        if self.schedule is not None and seeds is None:
            yield Schedule.parse(self.schedule)
            return
        for seed in range(self.seeds) if seeds is None else seeds:
            yield draw_schedule(
                seed,
                faults=self.faults,
                brokers=self.brokers,
                workers=self.workers,
                duration_ms=round(self.duration_s * 1_000),
            )


@dataclass(slots=True)
class Attempt:
    """One run of a test, with fixtures of its own."""

    options: ChaosOptions
    schedule: Schedule
    observe: bool = False
    run: ChaosRun | None = None
    error: BaseException | None = None
    """The first error of the run."""

    def start(self) -> ChaosRun:
        """Return the run that the fixtures and the test share."""
        self.run = ChaosRun(
            self.schedule,
            order=self.options.order,
            configs=self.options.configs,
            topics=self.options.topics,
            observe=self.observe,
            repair_aiokafka=self.options.repair_aiokafka,
        )
        return self.run

    @property
    def invariant(self) -> str | None:
        """The name of what did not hold."""
        return None if self.error is None else invariant_of(self.error)


class ChaosSearch:
    """Runs a test under schedules until one fails, makes that one small, and tells it."""

    def __init__(
        self, options: ChaosOptions, attempt: Callable[[Attempt], list[pytest.TestReport]]
    ) -> None:
        """`attempt(it)` runs the test once, and returns the reports of its phases."""
        self._options = options
        self._attempt = attempt

    def run(self, seeds: Iterable[int] | None) -> list[pytest.TestReport]:
        """Return the reports of the run that counts: the last one, or that of the smallest failure."""
        reports: list[pytest.TestReport] = []
        for passed, schedule in enumerate(self._options.schedules(seeds)):
            attempt = Attempt(self._options, schedule)
            reports = self._attempt(attempt)
            if attempt.error is not None:
                return self._tell(attempt, passed)
            if not all(report.passed for report in reports):  # skipped, or wrong before it began
                return reports
        return reports

    def _tell(self, first: Attempt, passed: int) -> list[pytest.TestReport]:
        def run(schedule: Schedule) -> str | None:
            attempt = Attempt(self._options, schedule)
            self._attempt(attempt)
            return attempt.invariant

        invariant = first.invariant or ""
        shrunk = shrink(first.schedule, invariant, run)
        once = Attempt(self._options, shrunk.schedule)
        self._attempt(once)
        again = Attempt(self._options, shrunk.schedule, observe=True)
        reports = self._attempt(again)
        text = _text(
            first, once, again, f"{passed} passed before, {shrunk.tries} runs to shrink it"
        )
        for report in reports:
            if report.failed:
                report.sections.append(("chaos", text))
        return reports


def _text(first: Attempt, once: Attempt, again: Attempt, runs: str) -> str:
    small = again.schedule
    outcomes = [each.run.outcome() for each in (once, again) if each.run is not None]
    course = "repeats" if len({outcome.digest for outcome in outcomes}) == 1 else "DOES NOT REPEAT"
    outcome = outcomes[-1]
    repaired = "repair_aiokafka=True, " if outcome.repairs else ""
    return "\n".join(
        (
            f"seed {small.seed}: {again.invariant}",
            f"{len(first.schedule.actions)} faults -> {len(small.actions)}; {runs}",
            f"{outcome.virtual_s:.3f} s of virtual time, trace {outcome.digest[:16]}, {course}",
            *repairs_text(outcome.repairs),
            "",
            timeline_text(outcome.moments),
            "",
            "to run this alone, mark the test with",
            f'@pytest.mark.chaos({repaired}schedule="""\n{textwrap.indent(str(small), " " * 4)}\n""")',
        )
    )
