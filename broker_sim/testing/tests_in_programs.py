"""Tests written with `def` in virtual time: each seed runs in a process of its own, beside its cluster on the loop.

The process is a pytest with this one test: it creates fixtures of all scopes, rewrites asserts and writes reports,
which are read here. The test's fixtures `kafka` and `chaos` reach the cluster over the virtual network. It is a copy of
a process that has loaded pytest, its plugins and the conftest files.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from dataclasses import replace
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest
from broker_sim_purgatory import SystemClock

from broker_sim.chaos.history import InvariantError
from broker_sim.chaos.run import ScheduledRun
from broker_sim.runtime.virtual.programs import Program
from broker_sim.runtime.virtual.programs.starting import ForkServers, first_imports
from broker_sim.runtime.virtual.stdlib import pinned_hash_seed
from broker_sim.testing.inside_program import REPORTS, TASK, Task
from broker_sim.testing.remote_objects import ObjectServer

if TYPE_CHECKING:
    from pathlib import Path

    from broker_sim.chaos.chaos import Chaos
    from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
    from broker_sim.runtime.virtual import VirtualEventLoop
    from broker_sim.testing.seeded_run import SeededRun

START: Final = "import sys; from broker_sim.testing.inside_program import main; sys.exit(main(sys.argv[1]{}))"
AS_FORK_SERVER: Final = ", is_fork_server=True"
OPTIONS: Final[dict[str, Any]] = {
    "usepdb": False, "trace": False, "maxfail": 0, "collectonly": False, "dist": "no", "numprocesses": None, "tx": [],
    "lf": False, "failedfirst": False, "newfirst": False, "cacheclear": False, "cacheshow": None, "stepwise": False,
    "no_cov": True, "keyword": "", "markexpr": "", "deselect": None, "virtual_seed": None, "virtual_seeds": None,
    "xmlpath": None, "setupshow": False, "setupplan": False, "setuponly": False,
}  # fmt: skip
"""Pytest options whose value in the test's process differs from the command line."""
WORKER: Final[dict[str, Any]] = {"workerid": "master", "testrunuid": "virtual"}
"""Variables of a pytest-xdist worker, so that plugins leave summaries and caches to this process."""
ABSENT: Final = ("no:terminal", "no:timeout")
"""Plugins disabled in the test's process: it has no terminal, and real timeouts make no sense in virtual time."""
FOLDER: Final = "virtual"
"""Name of a run's folder in pytest's temporary directory; kept until the next run."""
END_S: Final = 1.0
"""Virtual seconds in which the connections of an ended process are closed."""
_fork_servers = ForkServers(1)
"""The one for the file whose tests are being run."""


class ProcessRun:
    """One run of a test in a process of its own, with its reports."""

    def __init__(self, item: pytest.Function, run: SeededRun | ScheduledRun) -> None:
        self._item = item
        self._run = run
        self._failure: tuple[str, str] | None = None
        self.error: BaseException | None = None
        """The error that failed the seed."""

    def play(self) -> list[pytest.TestReport]:
        """Run the test to its end; return the reports of its phases, and of failures outside of the test."""
        begin_ms = SystemClock().now_ms()
        # One name for all runs, so that a test that sends its tmp_path repeats exactly.
        factory = self._item.config._tmp_path_factory  # type: ignore[attr-defined]  # noqa: SLF001 - no public access
        folder, text = factory.getbasetemp() / FOLDER, ""
        rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            self._run_on_the_loop(folder)
        except Exception as error:  # noqa: BLE001 - an error of the loop is the failure of the test
            self.error = error
            text = "\n".join((f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())))
        reports = self._reports(folder)
        if text or not any(report.when == "teardown" for report in reports):
            reports = [report for report in reports if report.when == "setup" or report.failed]
            if not any(report.failed for report in reports):
                reports.append(_report(self._item, text or self._ending(), "call"))
        for report in reports:
            report.duration = (SystemClock().now_ms() - begin_ms) / 1_000 * (report.when == "call")
        return reports

    def _run_on_the_loop(self, folder: Path) -> None:
        run, item = self._run, self._item
        try:
            if isinstance(run, ScheduledRun):
                chaos = run.open_chaos()
                kafka: SimulatedCluster | None = chaos.kafka
            else:
                chaos, kafka = None, run.open_cluster() if "kafka" in item.fixturenames else None
            run.wait_for_test(self._main(folder, kafka, chaos))
            run.raise_unhandled()
            if isinstance(run, ScheduledRun):
                run.close_chaos()
            elif kafka is not None:
                run.close_cluster()
        except BaseException as error:
            error.add_note(run.report())
            raise
        finally:
            run.close()

    async def _main(self, folder: Path, kafka: SimulatedCluster | None, chaos: Chaos | None) -> None:
        loop: Any = asyncio.get_running_loop()
        server = ObjectServer(kafka=kafka, chaos=chaos, run=self)
        task = self._task(folder, await server.open())
        (folder / TASK).write_bytes(pickle.dumps(task))
        faults = None
        if chaos is not None and "chaos" not in self._item.fixturenames:
            faults = asyncio.create_task(chaos.faults_over())
        program = self._program = self._start(loop, task, folder)
        await program.wait()
        if faults is not None:
            faults.cancel()
        if self._item.config.getoption("capture") == "no":
            sys.stdout.write(program.text)
        server.close()
        await asyncio.sleep(END_S)

    def _start(self, loop: VirtualEventLoop, task: Task, folder: Path) -> Program:
        env, cwd = {"PYTHONHASHSEED": str(pinned_hash_seed() or 0)}, self._item.config.invocation_params.dir
        command = ["python", "-c", START.format(""), str(folder)]
        server = _fork_servers.get(
            ["python", "-c", START.format(AS_FORK_SERVER), str(folder)],
            env,
            cwd,
            state=replace(task, name="", port=0),
        )
        return Program(loop, "test", server or command, env=env, cwd=cwd)

    def _task(self, folder: Path, port: int) -> Task:
        item = self._item
        config = item.config
        options = {name: value for name, value in vars(config.option).items() if _can_be_sent(value)}
        options.pop("file_or_dir", None)
        options |= {name: value for name, value in OPTIONS.items() if name in options}
        options["plugins"] = [*(options.get("plugins") or ()), *ABSENT]
        options["basetemp"] = str(folder / "tmp")
        arguments = [f"--rootdir={config.rootpath}"]
        if config.inipath is not None:
            arguments += ["-c", str(config.inipath)]
        worker = getattr(config, "workerinput", WORKER)
        name, imports = item.nodeid.partition("::")[2], tuple(first_imports(item.path))
        return Task(str(item.path), name, port, imports, options, tuple(arguments), tuple(sys.path), worker)

    def fail(self, invariant: str, text: str) -> None:
        """Record a failure when it happens, before the test's clients are closed; called by the test's process."""
        if self._failure is None:
            self._failure = invariant, text
            self._run.on_failure(AssertionError(text))

    # -- reports ------------------------------------------------------------------------------------

    def _reports(self, folder: Path) -> list[pytest.TestReport]:
        path = folder / REPORTS
        reports = []
        for line in path.read_text().splitlines() if path.exists() else ():
            data, failure = json.loads(line)
            config = self._item.config
            report = config.hook.pytest_report_from_serializable(config=config, data=data)
            if report.skipped and isinstance(report.longrepr, list):  # file, line and reason; JSON has no tuples
                report.longrepr = tuple(report.longrepr)
            if failure is not None:
                self.error = self.error or InvariantError(*failure)
                if isinstance(self.error, InvariantError):
                    report.sections.append(("virtual time", self._run.report()))
            reports.append(report)
        return reports

    def _ending(self) -> str:
        """Return the text of a missing report: the process has ended by itself."""
        program = self._program
        self.error = RuntimeError(f"its process ended with exit code {program.exit_code}, before its report")
        return f"{self.error}; its last output:\n{program.text}"


def refusal(item: pytest.Item, text: str) -> pytest.TestReport:
    """Return the report of a test that cannot start."""
    return _report(item, text, "setup")


def _report(item: pytest.Item, text: str, when: Literal["setup", "call"]) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "failed", text, when)


def _can_be_sent(value: object) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # noqa: BLE001 - pickling may raise anything
        return False
    return True
