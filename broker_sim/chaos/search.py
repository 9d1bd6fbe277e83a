"""The search: runs a test under the schedules of many seeds, in several processes, and shrinks failures.

It searches a test of an application (`ApplicationTest`), which `broker-sim chaos` and Spark find by its name
(`NamedTest`) and pytest runs with its fixtures, a command as workers (`program_workers.ProgramTest`), or the
simulator's own random runs (`random_run.random_runs`).
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import signal
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeVar

from broker_sim.chaos.aiokafka_repairs import REPAIRS
from broker_sim.chaos.assertions import shown_values
from broker_sim.chaos.exploring import Exploration, explore
from broker_sim.chaos.faults.schedule import FaultSchedule
from broker_sim.chaos.faults.shrink import shrink
from broker_sim.chaos.report import Failure, PythonCode
from broker_sim.chaos.run import TMP_PATH, Outcome, ScheduledRun
from broker_sim.chaos.settings import Settings
from broker_sim.errors import did_you_mean
from broker_sim.page.recording import page_of
from broker_sim.runtime.virtual import garbage_of_one_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from multiprocessing.pool import Pool

    from broker_sim.chaos.faults.shrink import Ran
    from broker_sim.chaos.schedule import Schedule
    from broker_sim.page.recording import RecordedPage, RecordedRun
    from broker_sim.runtime.virtual.explored_order import SchedulingPoint

THREADS: Final = Path("/proc/self/task")
"""Linux's list of the threads of this process."""
CHAOS: Final = "chaos"
"""Name of the argument of a test."""
_NAMED: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)
MARKER: Final = "chaos"
"""The pytest marker whose arguments are the settings of a test."""


class NoSuchTestError(ValueError):
    """There is no test of that name; the text is one line."""


class ApplicationTest(ABC):
    """A test of an application, with its settings."""

    name: str
    settings: Settings

    @abstractmethod
    def play(self, begin: Callable[[], ScheduledRun]) -> Outcome | None:
        """Begin a run, run the test in it, and return the outcome; None if the run did not begin."""

    def in_python(self) -> PythonCode:
        """Return the Python code with which a printed test calls the test's function."""
        module, _, function = self.name.partition(":")
        imports = f"import {module}\nfrom broker_sim.chaos import Schedule, run_chaos"
        return PythonCode(imports, f"{module}.{function}")

    def draw(self, seed: int) -> Schedule:
        """Return the schedule of a seed."""
        return self.settings.draw(seed)

    def run(self, schedule: Schedule, *, observe: bool = False, repairs: Iterable[str] = ()) -> Outcome:
        """Run the test under a schedule; with `observe` its time line also has the events of cluster and clients.

        `repairs` are repairs of aiokafka in addition to those of the settings.
        """
        outcome = self.play(partial(ScheduledRun, schedule, self.settings, observe=observe, repairs=repairs))
        return outcome or Outcome(schedule, "", 0, ())

    def page_of(self, outcome: Outcome) -> RecordedPage:
        """Run the schedule of a run again, with the same result, and return the page that plays it.

        A failing run is shown beside the run without its last fault.
        """
        run = self._recorded(outcome.schedule, "")
        assert run is not None
        actions = outcome.schedule.actions
        if outcome.invariant is None or not actions:
            return page_of(run)
        without = replace(outcome.schedule, actions=actions[:-1])
        return page_of(run, self._recorded(without, f" without {actions[-1].describe()}"))

    def _recorded(self, schedule: Schedule, which: str) -> RecordedRun | None:
        again = self.play(partial(ScheduledRun, schedule, self.settings, observe=True, record=True))
        if again is None or again.recording is None:
            return None
        failure = None
        if again.invariant is not None:
            failure = again.text if again.invariant in again.text else f"{again.invariant}: {again.text}"
        return again.recording.run(f"{self.name}, seed {schedule.seed}{which}", failure, again.virtual_s * 1_000)

    def bugs_of_aiokafka(self, first: Outcome, schedule: Schedule) -> tuple[str, ...]:
        """Return the repairs of aiokafka with which the run and its smallest schedule pass.

        They are those that are each sufficient alone, or all of them if none is.
        """
        if self.settings.repair_aiokafka or "aiokafka" not in sys.modules:
            return ()
        if any(self.run(each, repairs=REPAIRS).invariant is not None for each in (schedule, first.schedule)):
            return ()
        alone = [name for name in REPAIRS if self.run(schedule, repairs=(name,)).invariant is None]
        return tuple(alone or REPAIRS)

    def explore(self, schedule: Schedule) -> Exploration:
        """Run the test under a schedule in all orders, until one fails."""

        def run(going_first: Mapping[SchedulingPoint, str]) -> Outcome | None:
            return self.play(partial(ScheduledRun, schedule, self.settings, going_first=going_first))

        return explore(run, self.settings.max_runs)

    def shrink(self, first: Outcome) -> Failure:
        """Find the smallest schedule that fails as this run did, and observe its run."""
        shrunk = shrink(first, self.run)
        return self.observe(first, shrunk.schedule, shrunk.tries)

    def observe(self, first: Outcome, schedule: Schedule, tries: int = 0) -> Failure:
        """Run a schedule that fails as `first` did twice, observing the second run."""
        bugs = self.bugs_of_aiokafka(first, schedule)
        once, again = self.run(schedule), self.run(schedule, observe=True)
        repeats = once.digest == again.digest
        return Failure(self.name, self.in_python(), self.settings, first, again, tries, repeats, bugs)

    def examine(self, schedule: Schedule, *, shrinks: bool = True) -> Failure | None:
        """Run a schedule; if it fails, return the failure with the smallest schedule that fails in the same way."""
        first = self.run(schedule)
        if first.invariant is None:
            return None
        return self.shrink(first) if shrinks else self.observe(first, schedule)


@dataclass(frozen=True)
class NamedTest(ApplicationTest):
    """A test that is imported by name; can be sent to another process."""

    name: str
    """`module:function`, also searched in the current directory."""
    settings: Settings = field(default_factory=Settings)

    @classmethod
    def of(cls, name: str, usual: Mapping[str, Any] | None = None, **arguments: Any) -> NamedTest:
        """Return the test of that name with these settings.

        Missing settings, and those that are None, come from its marker `chaos`, then from `usual`. Raises
        NoSuchTestError and ConfigError.
        """
        test = load_test(name)
        check_test(name, test)
        marks = getattr(test, "pytestmark", ())
        mark = next((mark for mark in marks if mark.name == MARKER), None)
        args, marked = ((), {}) if mark is None else (mark.args, mark.kwargs)
        options = {key: value for key, value in arguments.items() if value is not None}
        if options.get("exhaustive"):  # all orders replace the marker's random choices
            marked = {key: value for key, value in marked.items() if key not in {"faults", "order"}}
        return cls(name, Settings.from_marker(args, {**(usual or {}), **marked, **options}))

    def play(self, begin: Callable[[], ScheduledRun]) -> Outcome:
        """Run the function of that name."""
        with garbage_of_one_run():
            return begin().run_whole(load_test(self.name))


@cache
def load_test(name: str) -> Any:
    """Return the function of `module:function`. Raises NoSuchTestError."""
    module, _, function = name.partition(":")
    if not (_is_module(module) and function.isidentifier()) or Path(module).is_file():
        raise NoSuchTestError(f"{name!r}: name the test as MODULE:FUNCTION{_likely_name(name)}")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        with shown_values(module):
            imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        hint = did_you_mean(module, (path.stem for path in Path().glob("*.py")))
        raise NoSuchTestError(f"{name!r}: {error}{hint}; is it in the current directory?") from None
    test = getattr(imported, function, None)
    if test is None:
        hint = did_you_mean(function, vars(imported))
        raise NoSuchTestError(f"{name!r}: the module has no {function!r}{hint}")
    return test


def _is_module(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _likely_name(name: str) -> str:
    """Return `, as NAME`, or what else to write for a test that is named as for pytest, as a file, or with a dot."""
    file, _, function = name.replace("::", ":").partition(":")
    function = function.partition("[")[0]
    before, _, behind = file.rpartition(".")
    if not function and Path(f"{before}.py").is_file() and behind != "py":
        file, function = before, behind
    path = Path(f"{file.removesuffix('.py')}.py")
    if not function and path.is_file():
        tree = ast.parse(path.read_bytes())
        tests = [each.name for each in tree.body if isinstance(each, ast.AsyncFunctionDef)]
        function = next((each for each in tests if each.startswith("test")), "FUNCTION")
    if path.is_absolute() or ".." in path.parts:
        return f"; go to the directory {path.parent}, and name it {path.stem}:{function or 'FUNCTION'}"
    module = ".".join(path.with_suffix("").parts)
    if function and _is_module(module) and function.isidentifier():
        return f", as {module}:{function}"
    return f"; Python cannot import {path}: rename it" if path.is_file() else "; a command is written after --"


def check_test(name: str, test: Any) -> None:
    """Raise NoSuchTestError unless the test can be run without pytest as `await test(chaos)`."""
    if not inspect.iscoroutinefunction(inspect.unwrap(test) if callable(test) else test):
        raise NoSuchTestError(f"{name!r} is not an async function: run it with pytest, or write async def")
    parameters = inspect.signature(test).parameters.values()
    needed = [each.name for each in parameters if each.default is each.empty and each.kind in _NAMED]
    others = [each for each in needed if each not in {CHAOS, TMP_PATH}]
    if CHAOS in needed and others:
        raise NoSuchTestError(
            f"{name!r} has the arguments {', '.join(others)}, which only pytest can provide: run it with pytest, or "
            f"use only {CHAOS} and {TMP_PATH}"
        )
    if CHAOS not in needed and len(others) != 1:
        raise NoSuchTestError(f"{name!r}: add the argument {CHAOS}, which starts the workers")


# -- seed after seed ----------------------------------------------------------------------------------

S = TypeVar("S", bound=FaultSchedule)


class Searched(Protocol[S]):
    """The subject of a search: draws schedules from seeds and runs them."""

    def draw(self, seed: int) -> S:
        """Return the schedule of a seed."""

    def run(self, schedule: S) -> Ran[S]:
        """Run a schedule."""


class SeedOutcome(NamedTuple):
    """The outcome of one seed, as values that can be sent between processes."""

    seed: int
    invariant: str | None
    text: str
    cpu_s: float
    summary: Any = None
    """Counts of a random run; None for tests of applications."""
    seen: Mapping[str, bool] = MappingProxyType({})
    """Whether the test has seen each name of its `sometimes` and `reached`."""
    faults: Mapping[str, Sequence[int]] = MappingProxyType({})
    """The number of faults of each kind that were drawn, happened and took effect."""


def run_seeds(searched: Searched[Any], seeds: Iterable[int], jobs: int) -> Iterator[SeedOutcome]:
    """Return the outcomes of seeds: with one job in this process and in order, with several in order of completion.

    The processes start with this call, and end after the last outcome.
    """
    run = partial(run_seed, searched)
    if jobs == 1:
        return map(run, seeds)
    import multiprocessing  # noqa: PLC0415 - slow to import, and a browser has no processes

    return _in_processes(multiprocessing.get_context(_start_method()).Pool(jobs, _start_process), run, seeds)


def _in_processes(pool: Pool, run: Callable[[int], SeedOutcome], seeds: Iterable[int]) -> Iterator[SeedOutcome]:
    with pool:
        yield from pool.imap_unordered(run, seeds)


def _start_method() -> Literal["fork", "spawn"]:
    """Return `fork`, whose processes have imported the test, or `spawn` if a copy might hold another thread's lock."""
    return "fork" if THREADS.is_dir() and len([*THREADS.iterdir()]) == 1 else "spawn"


def _start_process() -> None:
    # The parent process decides when this one ends; an exit removes temporary files, and a signal would not.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())


def run_seed(searched: Searched[Any], seed: int) -> SeedOutcome:
    """Run the schedule of a seed."""
    began_s = _processor_s()
    outcome = searched.run(searched.draw(seed))
    cpu_s = _processor_s() - began_s
    if isinstance(outcome, Outcome):
        faults = {kind: tuple(count) for kind, count in outcome.faults.items()}
        return SeedOutcome(seed, outcome.invariant, outcome.text, cpu_s, None, dict(outcome.seen), faults)
    return SeedOutcome(seed, outcome.invariant, outcome.text, cpu_s, getattr(outcome, "summary", None), {}, {})


def _processor_s() -> float:
    """Return the CPU seconds of this process and of the child processes that have ended."""
    times = os.times()
    cpu_s = time.process_time() + times.children_user + times.children_system
    if sys.platform != "linux":
        return cpu_s
    from broker_sim.runtime.virtual.programs.starting import SCRIPTS  # noqa: PLC0415 - there are programs on Linux only

    return cpu_s + SCRIPTS.cpu_s
