"""Runs pytest in a copy of the project, and returns the first failure."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools.defects.defect import PACKAGE_FOLDERS, ROOT
from tools.defects.tiers import TREE_TESTS
from tools.defects.watch_plugin import EVENTS, TEST_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

PASSED: Final = frozenset({0, 5})
"""Exit codes of pytest: all passed, or nothing was selected."""
CLOSING_S: Final = 60
NOT_COPIED: Final = shutil.ignore_patterns(".hypothesis", ".pytest_cache", "out")

_RUNNING: Final[set[subprocess.Popen[bytes]]] = set()
_ENDED: Final = threading.Event()


@dataclass(frozen=True, slots=True)
class Failure:
    """The first test that did not pass."""

    test: str
    why: str
    """`failed`, `hung`, or `died` if pytest itself ended in the test."""


class RunError(Exception):
    """Pytest itself could not run."""


def copy_project(target: Path) -> None:
    """Copy the tracked files with their current content, and compile them once for all further copies."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    # Collecting also compiles the product and the tests.
    failure = run_tests(target, ["--collect-only", "tests"], limit_s=600, test_limit_s=600)
    if failure is not None:
        raise RunError(f"{failure.test} cannot be collected even without a defect")


def python_path(tree: Path) -> str:
    """Return the PYTHONPATH that imports a copy of the project instead of the installed one."""
    return os.pathsep.join(map(str, (tree, *(tree / folder for folder in PACKAGE_FOLDERS))))


def copy_of(base: Path, target: Path) -> Path:
    """Copy a copy of the project with its compiled files."""
    return Path(shutil.copytree(base, target, symlinks=True, ignore=NOT_COPIED))


def run_tests(tree: Path, arguments: Sequence[str], *, limit_s: int, test_limit_s: int) -> Failure | None:
    """Run pytest in `tree` until a test fails, and return the failure; None without one."""
    # Hypothesis draws the same examples in every run: no defect is caught or missed by chance.
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "tools.defects.watch_plugin",
               "--hypothesis-seed=0", *(f"--ignore={path}" for path in TREE_TESTS)]  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        events, output = Path(directory, "events"), Path(directory, "output")
        events.touch()
        with output.open("w") as stream:
            process = subprocess.Popen(
                [*command, *arguments],
                cwd=tree,
                env=_environment(tree) | {EVENTS: str(events), TEST_LIMIT: str(test_limit_s)},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            _RUNNING.add(process)
            exit_code = _wait(process, limit_s)
            _RUNNING.discard(process)
        if _ENDED.is_set():
            raise RunError("interrupted")
        found = [json.loads(line) for line in events.read_text().splitlines()]
        return first_failure(exit_code, found, output)


def end_all() -> None:
    """End the runs of all threads, and start no more."""
    _ENDED.set()
    for process in list(_RUNNING):
        process.terminate()


def _environment(tree: Path) -> dict[str, str]:
    # Programs started by tests import the copy too.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    return environment | {"PYTHONPATH": python_path(tree)}


def _wait(process: subprocess.Popen[bytes], limit_s: int) -> int | None:
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.terminate()  # the tests' own handler closes their fixtures
        with suppress(subprocess.TimeoutExpired):
            process.wait(CLOSING_S)
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def first_failure(exit_code: int | None, events: list[tuple[str, str]], output: Path) -> Failure | None:
    """Return the failure according to the plugin's events. Raises RunError if pytest did not run."""
    for event, test in events:
        if event == "failed":
            return Failure(test, "failed")
    if exit_code in PASSED:
        return None
    if not events:
        raise RunError(f"pytest ended with {exit_code}:\n{output.read_text()[-2000:]}")
    event, test = events[-1]
    hung = event == "started" and exit_code in {None, 2}
    return Failure(test, "hung" if hung else "died")
