"""Prints how long tests took, by folder: `make test ARGS="-p tools.test_seconds"`.

A pytest plugin. The seconds include set-up, call and tear-down, summed over all processes; a shared fixture
counts for the first test that uses it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

DEPTH: Final = 3
"""Number of path components in the table: `tests/broker_sim/log`."""


class Seconds:
    """Adds up the durations of tests."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()
        self._tests: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the duration of a phase of a test."""
        *folders, _ = report.nodeid.partition("::")[0].split("/")
        folder = "/".join(folders[:DEPTH])
        self._seconds[folder] += report.duration
        self._tests[folder] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each folder, the longest first."""
        terminalreporter.section("seconds by folder")
        for folder, seconds in self._seconds.most_common():
            terminalreporter.line(f"{seconds:7.1f} s {self._tests[folder]:5} tests  {folder}")
        total = sum(self._seconds.values())
        terminalreporter.line(f"{total:7.1f} s {sum(self._tests.values()):5} tests  in all")


def pytest_configure(config: pytest.Config) -> None:
    """Register in the process that shows results, not in the workers of pytest-xdist."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Seconds())
