"""Tests with the marker `chaos`: pytest runs each as often as its search needs, with new fixtures each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.chaos.search import ApplicationTest
from broker_sim.chaos.sightings import Sightings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import pytest

    from broker_sim.chaos.exploring import Exploration
    from broker_sim.chaos.report import Failure
    from broker_sim.chaos.run import Outcome, ScheduledRun
    from broker_sim.chaos.settings import Settings

    Begin = Callable[[], ScheduledRun]


class MarkedTest(ApplicationTest):
    """A test that pytest runs."""

    def __init__(
        self, name: str, settings: Settings, run_once: Callable[[Begin], tuple[list[pytest.TestReport], Outcome | None]]
    ) -> None:
        """`run_once(begin)` runs the test once; it returns the reports of its phases and the outcome of the run."""
        self.name = name
        self.settings = settings
        self.reports: list[pytest.TestReport] = []
        """The reports of the last run."""
        self.exploration: Exploration | None = None
        """The orders run by an exhaustive search; None for other searches."""
        self.sightings = Sightings()
        """Sightings of all seeds that were run."""
        self.is_full = False
        """Whether a report shows the whole time line."""
        self.page_file: Path | None = None
        """The HTML file to write for a failing run, None for no file."""
        self.link_line: Callable[[int], str] | None = None
        """Returns the report line with a link that opens a seed in the playground; None for no line."""
        self._run_once = run_once

    def play(self, begin: Begin) -> Outcome | None:
        """Run the test by pytest; return the outcome, None if the run did not begin."""
        self.reports, outcome = self._run_once(begin)
        return outcome

    def search(self, seeds: Iterable[int] | None) -> list[pytest.TestReport]:
        """Run the test until a schedule fails; return the reports of the last run, or of the smallest failure.

        If all schedules pass but none has seen what `chaos.sometimes` requires, the last run is reported as failed.
        """
        for passed, schedule in enumerate(self.settings.schedules(seeds)):
            if self.settings.exhaustive and not schedule.deviations:
                self.exploration = self.explore(schedule)
                first, before = self.exploration.failure, str(self.exploration)
            else:
                outcome = self.run(schedule)
                self.sightings.add(outcome.seen, outcome.faults)
                first, before = outcome if outcome.invariant is not None else None, f"{passed} passed before"
            if first is not None:
                text = self._report(self.shrink(first), before)
                for report in self.reports:
                    if report.failed:
                        report.sections.append(("chaos", text))
                return self.reports
            if not all(report.passed for report in self.reports):  # skipped, or failed before the run began
                return self.reports
        if reason := self.sightings.failure():
            for report in self.reports:
                if report.when == "call":
                    report.outcome, report.longrepr = "failed", f"the seeds passed, but the search fails: {reason}"
        return self.reports

    def _report(self, failure: Failure, before: str) -> str:
        """Return the report of a failure with its link, and write its page if there is a file for it."""
        text, file = failure.in_pytest(before, is_full=self.is_full), self.page_file
        if self.link_line is not None:
            text = f"{text}\n\n{self.link_line(failure.seed)}"
        if file is None:
            return text
        reports = self.reports
        page = self.page_of(failure.small)
        self.reports = reports  # page_of runs the test again and replaces them
        file.parent.mkdir(parents=True, exist_ok=True)
        return f"{text}\n\n{page.write(file)}"
