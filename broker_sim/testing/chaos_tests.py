"""Tests with the marker `chaos`: many seeds, and what fails is shrunk and told."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from broker_sim.chaos import Schedule, ScheduleError, draw_schedule
from broker_sim.chaos.drawing import calm_schedule
from broker_sim.chaos.exploring import MAX_RUNS, Exhaustive, explore, explored_by
from broker_sim.chaos.faults.kinds import weights_of
from broker_sim.chaos.report import repairs_text, shrunk_text
from broker_sim.chaos.run import ChaosRun, Outcome
from broker_sim.chaos.shrink import shrink
from broker_sim.chaos.timeline import timeline_text
from broker_sim.runtime.virtual.loop import Order
from broker_sim.testing.explored import EXPLORED
from broker_sim.testing.options import BadOptionError, ClusterOptions, check_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pytest

    from broker_sim.chaos.run import Meetings
    from broker_sim.runtime.virtual.meetings import Place


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
    latency_ms: int | None = None
    """How long a message takes at most, one way; None if each seed draws it."""
    exhaustive: Exhaustive = False
    """Whether the test runs in all orders of its workers' turns, or with "brokers" of what brokers hear.

    Without faults unless a schedule is given.
    """
    max_runs: int = MAX_RUNS
    """So many orders at most."""
    repair_aiokafka: bool = False
    """Mend bugs of that client for the test, on which correct applications fail."""
    schedule: str | None = None
    """The only schedule, as a report has printed it."""

    def check(self) -> None:
        """Raise BadOptionError for what no run can have."""
        ClusterOptions.check(self)  # a class with slots is made anew, which `super()` does not know
        check_count("seeds", self.seeds)
        check_count("workers", self.workers)
        check_count("max_runs", self.max_runs)
        if self.exhaustive not in {False, True, "workers", "brokers"}:
            raise BadOptionError(f"exhaustive={self.exhaustive!r}: choose True, 'workers' or 'brokers'")
        if self.exhaustive and (self.faults is not None or self.order != "fifo"):
            raise BadOptionError("exhaustive=True: it has neither faults nor order; give a schedule")
        if not isinstance(self.duration_s, int | float) or self.duration_s < 1:
            raise BadOptionError(f"duration_s={self.duration_s!r}: give seconds, at least 1")
        if self.order not in get_args(Order):
            raise BadOptionError(f"order={self.order!r}: choose 'fifo' or 'seeded'")
        latency_ms = 0 if self.latency_ms is None else self.latency_ms
        if not isinstance(latency_ms, int) or isinstance(latency_ms, bool) or latency_ms < 0:
            raise BadOptionError(f"latency_ms={latency_ms!r}: give whole milliseconds, the most")
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
        if self.exhaustive and seeds is None:
            seeds = (0,)
        for seed in range(self.seeds) if seeds is None else seeds:
            if self.exhaustive:
                yield calm_schedule(seed, self.brokers, self.workers, self.latency_ms)
                continue
            yield draw_schedule(
                seed,
                faults=self.faults,
                brokers=self.brokers,
                workers=self.workers,
                duration_ms=round(self.duration_s * 1_000),
                latency_ms=self.latency_ms,
                order=self.order,
            )


@dataclass(slots=True)
class Attempt:
    """One run of a test, with fixtures of its own."""

    options: ChaosOptions
    schedule: Schedule
    observe: bool = False
    going_first: Mapping[Place, str] | None = None
    """Of an exhaustive search: see `MeetingOrder`."""
    run: ChaosRun | None = None
    error: BaseException | None = None
    """The first error of the run."""

    def start(self) -> ChaosRun:
        """Return the run that the fixtures and the test share."""
        self.run = ChaosRun(
            self.schedule,
            configs=self.options.configs,
            topics=self.options.topics,
            observe=self.observe,
            repair_aiokafka=self.options.repair_aiokafka,
            going_first=self.going_first,
            explores=explored_by(self.options.exhaustive),
        )
        return self.run

    def outcome(self) -> Outcome:
        """Return how the run ended; as passed if it did not begin."""
        if self.run is None:
            return Outcome(self.schedule, "", 0, ())
        return self.run.outcome(self.error)


class ChaosSearch:
    """Runs a test under schedules until one fails, makes that one small, and tells it."""

    def __init__(self, options: ChaosOptions, attempt: Callable[[Attempt], list[pytest.TestReport]]) -> None:
        """`attempt(it)` runs the test once, and returns the reports of its phases."""
        self._options = options
        self._attempt = attempt

    def run(self, seeds: Iterable[int] | None) -> list[pytest.TestReport]:
        """Return the reports of the run that counts: the last one, or that of the smallest failure."""
        reports: list[pytest.TestReport] = []
        for passed, schedule in enumerate(self._options.schedules(seeds)):
            if self._options.exhaustive and not schedule.deviations:
                reports, first, text = self._explore(schedule)
            else:
                attempt = Attempt(self._options, schedule)
                reports = self._attempt(attempt)
                first, text = attempt.outcome(), f"{passed} passed before"
            if first.invariant is not None:
                return self._tell(first, text)
            if not all(report.passed for report in reports):  # skipped, or wrong before it began
                return reports
        return reports

    def _explore(self, schedule: Schedule) -> tuple[list[pytest.TestReport], Outcome, str]:
        """Run all orders; return the reports of the last one, the one that failed, and how many there were."""
        reports: list[pytest.TestReport] = []
        last = Attempt(self._options, schedule)

        def run(going_first: Mapping[Place, str]) -> tuple[Outcome, Meetings | None]:
            nonlocal reports, last
            last = Attempt(self._options, schedule, going_first=going_first)
            reports = self._attempt(last)
            return last.outcome(), None if last.run is None else last.run.meetings

        found = explore(run, self._options.max_runs)
        for report in reports:
            if report.when == "call":
                report.user_properties.append((EXPLORED, str(found)))
        return reports, found.failure or last.outcome(), str(found)

    def _tell(self, first: Outcome, text: str) -> list[pytest.TestReport]:
        def run(schedule: Schedule) -> Outcome:
            attempt = Attempt(self._options, schedule)
            self._attempt(attempt)
            return attempt.outcome()

        shrunk = shrink(first, run)
        once = run(shrunk.schedule)
        again = Attempt(self._options, shrunk.schedule, observe=True)
        reports = self._attempt(again)
        runs = f"{text}, {shrunk.tries} runs to shrink it"
        told = _text(first, once, again.outcome(), runs)
        for report in reports:
            if report.failed:
                report.sections.append(("chaos", told))
        return reports


def _text(first: Outcome, once: Outcome, again: Outcome, runs: str) -> str:
    small = again.schedule
    course = "repeats" if once.digest == again.digest else "DOES NOT REPEAT"
    repaired = "repair_aiokafka=True, " if again.repairs else ""
    return "\n".join(
        (
            f"seed {small.seed}: {again.invariant}",
            f"{shrunk_text(first, again)}; {runs}",
            f"{again.virtual_s:.3f} s of virtual time, trace {again.digest[:16]}, {course}",
            *repairs_text(again.repairs),
            "",
            timeline_text(again.moments),
            "",
            "to run this alone, mark the test with",
            f'@pytest.mark.chaos({repaired}schedule="""\n{textwrap.indent(str(small), " " * 4)}\n""")',
        )
    )
