"""A plugin for pytest that writes down which test runs, and which one failed.

A test that takes longer than its limit is ended as by Ctrl-C; being the last one that started and did
not finish, it is the one that hung.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

EVENTS: Final = "DEFECTS_EVENTS"
TEST_LIMIT: Final = "DEFECTS_TEST_LIMIT_S"


def _write(event: str, nodeid: str) -> None:
    with Path(os.environ[EVENTS]).open("a") as events:
        events.write(json.dumps([event, nodeid]) + "\n")


def pytest_runtest_logstart(nodeid: str) -> None:
    """Start the test's limit."""
    _write("started", nodeid)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(int(os.environ[TEST_LIMIT]))


def pytest_runtest_logfinish(nodeid: str) -> None:
    """End the test's limit."""
    signal.alarm(0)
    _write("finished", nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a failure in the test, or in its fixtures."""
    if report.failed:
        _write("failed", report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a module that cannot be imported."""
    if report.failed:
        _write("failed", report.nodeid)
