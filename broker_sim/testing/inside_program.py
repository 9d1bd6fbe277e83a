"""The process of a `def` test in virtual time: a pytest that runs this one test with one seed.

`tests_in_programs.py` starts it in a folder that has its `Task`, and reads the reports that it writes there. A fork
server has loaded the plugins and conftest files of one test file; each of its copies runs a test.
"""

from __future__ import annotations

import json
import os
import pdb  # noqa: T100 - it is refused
import pickle
import sys
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest
from _pytest.config import Config
from broker_sim_purgatory import SystemClock

from broker_sim.chaos.chaos import failure_text, invariant_of
from broker_sim.chaos.history import POLL_INTERVAL_S, InvariantError
from broker_sim.cluster.verbs import WAIT_LIMIT_S, Verbs
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.control.verb import BlockingFace
from broker_sim.errors import ClusterTimeoutError
from broker_sim.runtime.virtual.programs.fork_hook.sitecustomize import import_installed, serve_forks
from broker_sim.testing import INSIDE_PLUGIN, PDB_ADVICE
from broker_sim.testing.remote_objects import ObjectClient, RemoteObject

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

TASK: Final = "task.pickle"
REPORTS: Final = "reports.json"
WAIT_UNTIL_INTERVAL_S: Final = 0.01
KAFKA, CHAOS, RUN = range(3)
"""Numbers of the objects that the loop's process serves."""


NO_CALLS: Final = "the loop cannot call a function of the test; write it with async def"


@dataclass(frozen=True)
class Task:
    """Everything that the pytest of the test's process needs to run the test."""

    file: str
    name: str
    """The test's node id without the file."""
    port: int
    imports: tuple[str, ...]
    """The first imports of the file."""
    options: dict[str, Any]
    arguments: tuple[str, ...]
    path: tuple[str, ...]
    worker: dict[str, Any]


def _is_true_within(limit_s: float, condition: Callable[[], object], every_s: float) -> bool:
    """Call a condition every `every_s` seconds until it is true; False after `limit_s` seconds."""
    pause, clock = threading.Event(), SystemClock()
    end_ms = clock.now_ms() + limit_s * 1_000
    while not condition():
        if clock.now_ms() >= end_ms:
            return False
        pause.wait(every_s)
    return True


class ProgramKafka(Verbs, BlockingFace):
    """The fixture `kafka` of a `def` test in virtual time: the verbs of a cluster, as blocking calls."""

    def __init__(self, client: ObjectClient) -> None:
        self._remote = RemoteObject(client, KAFKA, SimulatedCluster)

    def __repr__(self) -> str:
        return f"<cluster in virtual time at {self.bootstrap_servers}>"

    def bind_verb(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls the verb on the loop."""
        verb: Callable[..., Any] = getattr(self._remote, method.__name__)
        return verb

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote, name)

    def hook(self, *_: object, **__: object) -> NoReturn:
        """Not available: the function would have to be called on the loop."""
        raise TypeError(NO_CALLS)

    @property
    def nodes(self) -> Any:
        """Not available: the nodes are in the process of the loop."""
        raise TypeError("the nodes of the cluster are in another process; use its verbs, or write the test with async")

    def wait_until(self, predicate: Callable[[], object], timeout_s: float = WAIT_LIMIT_S) -> None:
        """Wait until `predicate()` is true; it is called every 10 ms of virtual time.

        Raises ClusterTimeoutError, with what `describe` returns, after `timeout_s` seconds.
        """
        __tracebackhide__ = True
        if not _is_true_within(timeout_s, predicate, WAIT_UNTIL_INTERVAL_S):
            raise ClusterTimeoutError(f"waited {timeout_s:g} s for {predicate!r}\n{self.describe()}")


class ProgramChaos:
    """The fixture `chaos` of a `def` test: see `broker_sim.chaos.Chaos`."""

    def __init__(self, client: ObjectClient, kafka: ProgramKafka) -> None:
        from broker_sim.chaos import Chaos  # noqa: PLC0415 - only for tests under chaos

        self._remote = RemoteObject(client, CHAOS, Chaos)
        self.kafka = kafka

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote, name)

    def eventually(
        self,
        condition: Callable[[], object],
        invariant: str,
        *,
        within_s: float = 60,
        text: Callable[[], str] | None = None,
    ) -> None:
        """Wait until `condition()` is true. Raises InvariantError after `within_s` virtual seconds."""
        __tracebackhide__ = True
        if not _is_true_within(within_s, condition, POLL_INTERVAL_S):
            raise InvariantError(invariant, text() if text else f"not within {within_s:g} s")

    def check(self, condition: Callable[[], object], invariant: str) -> NoReturn:
        """Not available: the loop cannot call a function of the test."""
        del condition, invariant
        raise TypeError(NO_CALLS)

    sometimes = watch = check


class Inside:
    """The pytest plugin in the test's process: provides the fixtures and writes the reports."""

    def __init__(self, task: Task, folder: Path) -> None:
        client = ObjectClient(task.port)
        self.kafka = ProgramKafka(client)
        self._client = client
        self._reports = (folder / REPORTS).open("w")

    @property
    def chaos(self) -> ProgramChaos:
        """The fixture `chaos`."""
        return ProgramChaos(self._client, self.kafka)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Disable debuggers, which would wait outside of virtual time."""
        pdb.set_trace = sys.breakpointhook = _refuse_debugger

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write the report of a phase, and with a failure the violated invariant for the search."""
        report = yield
        failure = None
        if report.failed and call.excinfo is not None:
            error = call.excinfo.value
            failure = invariant_of(error), failure_text(error)
            self._client.ask(RUN, "fail", (failure, {}))
        data = item.config.hook.pytest_report_to_serializable(config=item.config, report=report)
        self._reports.write(json.dumps([data, failure], default=repr) + "\n")
        self._reports.flush()
        return report


def _refuse_debugger(*_: object, **__: object) -> NoReturn:
    __tracebackhide__ = True
    pytest.fail(PDB_ADVICE)


def _task(folder: Path) -> Task:
    task: Task = pickle.loads((folder / TASK).read_bytes())  # noqa: S301 - our own file
    return task


def _open_files() -> set[str]:
    return {file.name for file in Path("/proc/self/fd").iterdir() if file.exists()}


def _serve_forks(config: Config, task: Task, files: set[str]) -> None:
    """Wait to be copied; ends this process if a conftest has opened files, or what ends with the process."""
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    if _open_files() - files or any(end.alive for end in weakref.finalize._registry):  # type: ignore[attr-defined]  # noqa: SLF001
        os._exit(1)
    import_installed([*task.imports])
    serve_forks()
    capture.start_global_capturing()
    capture.suspend_global_capture()


def main(folder: str, *, is_fork_server: bool = False) -> int:
    """Run the test of the task in this folder; return pytest's exit code."""
    path, files = Path(folder), _open_files()
    task = _task(path)
    sys.path[:] = task.path
    config = Config.fromdictargs(task.options, [*task.arguments, f"{task.file}::{task.name}"])
    config.workerinput = task.worker  # type: ignore[attr-defined]  # so that plugins leave reporting to the other process
    if is_fork_server:
        _serve_forks(config, task, files)
        task = _task(path)
        config.args = [f"{task.file}::{task.name}"]
    config.pluginmanager.register(Inside(task, path), INSIDE_PLUGIN)
    return int(config.hook.pytest_cmdline_main(config=config))
