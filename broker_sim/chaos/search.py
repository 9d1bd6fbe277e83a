"""Runs a test under the schedules of many seeds, on several processes, and tells each failure once."""

from __future__ import annotations

import importlib
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from broker_sim.chaos.drawing import calm_schedule, draw_schedule
from broker_sim.chaos.exploring import MAX_RUNS, Exploration, explore, explored_by
from broker_sim.chaos.faults.kinds import weights_of
from broker_sim.chaos.report import Failure
from broker_sim.chaos.run import ChaosRun, run_chaos
from broker_sim.chaos.schedule import DEFAULT_DURATION_MS
from broker_sim.chaos.shrink import shrink
from broker_sim.runtime.process_pool import run_on_processes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from broker_sim.chaos.exploring import Exhaustive
    from broker_sim.chaos.run import Meetings, Outcome
    from broker_sim.chaos.schedule import Schedule
    from broker_sim.config import GivenValue
    from broker_sim.runtime.virtual.loop import Order
    from broker_sim.runtime.virtual.meetings import Place

MARKER: Final = "chaos"
"""Of pytest, which a test may have."""
_SAID: Final = (
    "brokers", "workers", "latency_ms", "order", "repair_aiokafka", "exhaustive", "max_runs"
)  # fmt: skip


class NoSuchTestError(ValueError):
    """What `module:function` names is not there; the text is one line."""


@dataclass(frozen=True, slots=True)
class ChaosTest:
    """A test by its name, and how its schedules are drawn; it can be sent to another process."""

    name: str
    """`module:function`, found from the current directory too."""
    faults: tuple[tuple[str, float], ...] | None = None
    """Kinds and weights; None are all with their usual ones."""
    brokers: int = 3
    workers: int = 2
    duration_ms: int = DEFAULT_DURATION_MS
    latency_ms: int | None = None
    """How long a message takes at most; None if each seed draws it."""
    order: Order = "fifo"
    repair_aiokafka: bool = False
    configs: tuple[tuple[str, GivenValue], ...] = ()
    topics: tuple[str, ...] = ()
    exhaustive: Exhaustive = False
    """Whether all orders are run, of workers or of brokers, without faults unless a schedule is given."""
    max_runs: int = MAX_RUNS
    """So many orders at most."""

    @classmethod
    def of(cls, name: str, **given: Any) -> Self:
        """Return the test of that name; its marker `chaos` says what is not given, or given as None.

        Raises NoSuchTestError, and ValueError for arguments that cannot be.
        """
        marks = getattr(load_test(name), "pytestmark", ())
        marked = next((dict(mark.kwargs) for mark in marks if mark.name == MARKER), {})
        said = {**marked, **{key: value for key, value in given.items() if value is not None}}
        kept = {field: said[field] for field in _SAID if field in said}
        if "duration_s" in said:
            kept["duration_ms"] = round(said["duration_s"] * 1_000)
        if said.get("faults") is not None:
            kept["faults"] = tuple(weights_of(said["faults"]).items())
        configs = tuple((said.get("configs") or {}).items())
        return cls(name, configs=configs, topics=tuple(said.get("topics", ())), **kept)

    def draw(self, seed: int) -> Schedule:
        """Return the schedule of a seed; one without faults if all orders are run."""
        if self.exhaustive:
            return calm_schedule(seed, self.brokers, self.workers, self.latency_ms)
        return draw_schedule(
            seed,
            faults=None if self.faults is None else dict(self.faults),
            brokers=self.brokers,
            workers=self.workers,
            duration_ms=self.duration_ms,
            latency_ms=self.latency_ms,
            order=self.order,
        )

    def run(self, schedule: Schedule, *, observe: bool = False) -> Outcome:
        """Run the test under a schedule."""
        return run_chaos(load_test(self.name), schedule, observe=observe, **self._run_options)

    def explore(self, schedule: Schedule) -> Exploration:
        """Run the test under a schedule in all orders, until one fails."""

        def run(going_first: Mapping[Place, str]) -> tuple[Outcome, Meetings | None]:
            explores = explored_by(self.exhaustive)
            one = ChaosRun(schedule, going_first=going_first, explores=explores, **self._run_options)
            return one.run_whole(load_test(self.name)), one.meetings

        return explore(run, self.max_runs)

    @property
    def _run_options(self) -> dict[str, Any]:
        return {"configs": dict(self.configs), "topics": self.topics, "repair_aiokafka": self.repair_aiokafka}


class SeedOutcome(NamedTuple):
    """How the run of one seed ended, as far as another process can be told."""

    seed: int
    invariant: str | None
    text: str
    cpu_s: float


@cache
def load_test(name: str) -> Any:
    """Return the function of `module:function`. Raises NoSuchTestError."""
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise NoSuchTestError(f"{name!r}: name the test as MODULE:FUNCTION")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), function, None)
    except ModuleNotFoundError as error:
        raise NoSuchTestError(f"{name!r}: {error}; is it in the current directory?") from None
    if found is None:
        raise NoSuchTestError(f"{name!r}: the module has no {function!r}")
    return found


def run_seeds(test: ChaosTest, seeds: Iterable[int], jobs: int) -> Iterator[SeedOutcome]:
    """Yield the outcomes of seeds as they come; with several jobs in any order."""
    yield from run_on_processes(_run, ((test, seed) for seed in seeds), jobs)


def _run(work: tuple[ChaosTest, int]) -> SeedOutcome:
    return run_seed(*work)


def run_seed(test: ChaosTest, seed: int) -> SeedOutcome:
    """Run the test under the schedule of a seed."""
    began_s = time.process_time()
    outcome = test.run(test.draw(seed))
    return SeedOutcome(seed, outcome.invariant, outcome.text, time.process_time() - began_s)


def examine(test: ChaosTest, schedule: Schedule, *, shrinks: bool = True) -> Failure | None:
    """Run a schedule; if it fails, find the smallest one that fails alike, and observe it."""
    first = test.run(schedule)
    return None if first.invariant is None else examine_failed(test, first, shrinks=shrinks)


def examine_failed(test: ChaosTest, first: Outcome, *, shrinks: bool = True) -> Failure:
    """Find the smallest schedule that fails as this run did, and observe it."""
    small, tries = first.schedule, 0
    if shrinks:
        shrunk = shrink(first, test.run)
        small, tries = shrunk.schedule, shrunk.tries
    once, again = test.run(small), test.run(small, observe=True)
    return Failure(test.name, first, again, tries, once.digest == again.digest)
