"""A pytest plugin that records which test is running, and which one failed.

A test that exceeds its time limit is ended as by Ctrl-C; it is recognised as the last one that started and did
not finish.
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
    """Start the test's time limit."""
    _write("started", nodeid)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(int(os.environ[TEST_LIMIT]))


def pytest_runtest_logfinish(nodeid: str) -> None:
    """End the test's time limit."""
    signal.alarm(0)
    _write("finished", nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record a failure of the test or its fixtures."""
    if report.failed:
        _write("failed", report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record a module that cannot be imported."""
    if report.failed:
        _write("failed", report.nodeid)
