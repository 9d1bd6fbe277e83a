"""Part of the pytest plugin: tells at the end how many orders of tasks were run for each exhaustive test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

EXPLORED: Final = "orders_explored"
"""The property of a test's report that says how many."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each such test that did not fail; the report of a failure says it itself."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                for name, text in report.user_properties:
                    if name == EXPLORED:
                        terminalreporter.write_line(f"{report.nodeid}: {text}")
