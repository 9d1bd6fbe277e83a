"""The argument of a test under chaos: the cluster, its workers, and the time in which faults happen."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Coroutine
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.dependency import Dependency
from broker_sim.chaos.faults.cluster_faults import ClusterFaults
from broker_sim.chaos.faults.faults import Faults
from broker_sim.chaos.history import POLL_INTERVAL_S, History, InvariantError
from broker_sim.chaos.sightings import FaultCount
from broker_sim.chaos.timeline import FAULT, Timeline
from broker_sim.chaos.worker import Worker, WorkerFaults, cause_of, error_text, is_of_the_environment
from broker_sim.errors import WrongStateError
from broker_sim.runtime.virtual.core.processes import PROCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from broker_sim.chaos.faults.action import Action
    from broker_sim.chaos.schedule import Schedule
    from broker_sim.chaos.worker import Main
    from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
    from broker_sim.runtime.virtual import VirtualEventLoop
    from broker_sim.runtime.virtual.core.processes import Process
    from broker_sim.runtime.virtual.programs import Program

__tracebackhide__ = True
"""Makes pytest end the traceback of a violated invariant at the line of the test."""
RECOVERY_S: Final = 60
"""Seconds within which the cluster must recover after the last fault; more is a defect of the simulator."""
WORKER_VARIABLE: Final = "WORKER"
"""Environment variable with the name of a program's worker."""
DEPENDENCY_VARIABLE: Final = "DEPENDENCY_URL"
"""Environment variable with the URL of a program's simulated dependency."""
CRASHES_IN_A_WAIT: Final = 0.25
"""Share of the crashes that hit a program while it waits."""
MAX_CALLS: Final = 500
"""Maximum number of system calls until a crash hits a program; handling a message makes some dozens."""
NO_FAILED_PROGRAM: Final = "no worker ends with an exit code other than 0"
_OWN_CODE: Final = str(Path(__file__).parents[1])


def invariant_of(error: BaseException) -> str:
    """Return the name of the violated invariant; runs with the same name failed in the same way.

    For a plain `assert` it is its place, for other errors their type; for an exception group that of its cause.
    """
    error = cause_of(error)
    if isinstance(error, InvariantError):
        return error.invariant
    name = type(error).__name__
    place = _place_of(error) if isinstance(error, AssertionError) else None
    return f"{name} at {place}" if place else name


def failure_text(error: BaseException) -> str:
    """Return the text of a failure; for errors other than assertions with type and place."""
    error = cause_of(error)
    if isinstance(error, AssertionError):
        return str(error) or invariant_of(error)
    place = _place_of(error)
    lines = f"{error_text(error)} (at {place})" if place else error_text(error)
    return "\n  ".join((lines, *getattr(error, "__notes__", ())))


def _place_of(error: BaseException) -> str | None:
    """Return file and line of the last frame outside the simulator."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_OWN_CODE)]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None


@contextmanager
def _noted(invariant: str, when: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"raised by the condition of {invariant!r}, which is called {when}")
        raise


def _evaluate(condition: Callable[[], object], invariant: str, when: str) -> object:
    with _noted(invariant, when):
        value = condition()
        if isinstance(value, Coroutine):
            value.close()
            raise TypeError("a condition that is called at every moment cannot be async")
        return value


class _TracedTimeline(Timeline):
    """A time line whose faults are part of the run's digest."""

    def __init__(self, loop: VirtualEventLoop) -> None:
        super().__init__(loop.time)
        self._trace = loop.trace

    def begun(self, action: Action) -> None:
        """Note a fault that begins, in the trace too."""
        self._trace.record("fault", str(action))
        super().begun(action)


class Chaos:
    """One run of a test. `kafka` is its cluster, with the verbs of `AsyncCluster`."""

    def __init__(self, loop: VirtualEventLoop, kafka: SimulatedCluster, schedule: Schedule) -> None:
        self.kafka = kafka
        self.schedule = schedule
        self.workers: list[Worker] = []
        self.timeline = _TracedTimeline(loop)
        self._loop = loop
        cluster = ClusterFaults(kafka, loop.network)
        workers = WorkerFaults(self.workers, loop.network, cluster, self._start)
        self._faults = Faults(loop, cluster, self.timeline, workers)
        self._claims: dict[str, Callable[[], object]] = {}
        self._watchers: list[Callable[[], object]] = []
        self._seen_ns = -1
        self.seen: dict[str, bool] = {}
        """Whether this run has seen each name of `sometimes` and `reached`."""
        self._history: History | None = None
        self._has_ended = False
        self._sought: dict[str, Callable[[], object]] = {}

    def start(self, main: Main, count: int = 1, *, versions: Sequence[Main] = ()) -> list[Worker]:
        """Start `count` workers, each a process of its own on a host `worker-1`, `worker-2`, ...

        `main` is a coroutine function; it gets its `Worker` if it takes an argument. A worker is restarted a second
        after it ended with an error of its environment: OSError, TimeoutError, or a client's KafkaError. Any other
        error fails the test. After each fault `deploy` it runs the next of `versions`, until there is no further one.
        """
        return [self._start((main, *versions)) for _ in range(count)]

    def _start(self, versions: Sequence[Main]) -> Worker:
        worker = Worker(self._loop, self.timeline, f"worker-{len(self.workers) + 1}", versions)
        self.workers.append(worker)
        worker.start()
        return worker

    def program(
        self,
        *command: str,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        may_fail: bool = True,
    ) -> Callable[[Worker], Coroutine[Any, Any, None]]:
        """Return a `main` for `start` that runs a command in any language in an OS process of its own.

        `chaos.start(chaos.program("python", "worker.py"), count=2)`. The program finds the cluster in
        `KAFKA_BOOTSTRAP_SERVERS` and its own name in `WORKER`. An exit code other than 0 counts as an error of its
        environment, after which it is restarted; with `may_fail=False` it fails the run. Its output is on the time
        line. `crash` may kill it between two statements. `DEPENDENCY_URL` is a simulated dependency: a GET is
        answered with 200, and while a fault `fail` is in force its connection is closed.
        """

        async def main(worker: Worker) -> None:
            dependency = Dependency(worker)
            program = self.kafka.start_program(
                *command,
                name=f"{worker.name} start {worker.starts}",
                env={WORKER_VARIABLE: worker.name, DEPENDENCY_VARIABLE: await dependency.open(), **(env or {})},
                cwd=cwd,
                process=worker.process,
                on_output=partial(self.note, worker.name),
            )
            worker.on_death(program.kill)
            worker.on_crash(partial(self._crash, program))
            try:
                code = await program.wait()
            except asyncio.CancelledError:
                program.send_signal()
                await program.wait()
                raise
            if code and not may_fail and not program.is_killed:
                last = next(iter(program.text.splitlines()[::-1]), "nothing")
                raise InvariantError(NO_FAILED_PROGRAM, f"{worker.name} ended with {code}; its last output: {last}")
            if code:
                raise OSError(f"exit code {code}")

        return main

    def _crash(self, program: Program) -> None:
        """Kill a program now, while it waits, or at a system call that the seed draws."""
        draw = self._loop.stream(f"crash of {program.name} at {self._loop.clock.now_ns}")
        if draw.random() < CRASHES_IN_A_WAIT:
            program.kill()
        else:
            program.kill_at_call(int(MAX_CALLS ** draw.random()))

    async def faults_over(self) -> None:
        """Let the faults of the schedule happen; return when the last is over and the cluster has recovered.

        Workers may not have recovered yet: use `eventually`.
        """
        self._faults.schedule(self.schedule.actions)
        await asyncio.sleep(self.schedule.duration_ms / 1000)
        await self.eventually(lambda: self._faults.are_over, "the cluster recovers", within_s=RECOVERY_S)
        self.note(FAULT, "all over, all replicas in sync")

    @property
    def history(self) -> History:
        """The events so far, with ready judgements in place of counters.

        It is complete if the test, or a function of its module, mentions it by name. Other code must read it before
        the workers start; later that raises WrongStateError.
        """
        if self._history is None:
            if self.workers:
                raise WrongStateError("the history lacks its beginning: read chaos.history before chaos.start(...)")
            return self.begin_history()
        return self._history

    def begin_history(self) -> History:
        """Start recording all requests; return the history."""
        history, requests = History(self.kafka), self.kafka.nodes.requests
        if not requests.limit:
            requests.keep(1)
        requests.on_answer = history.take
        self._history = history
        return history

    def fault_counts(self) -> dict[str, FaultCount]:
        """Return the number of faults of each kind: scheduled, happened so far, and effective so far."""
        drawn, faults = Counter(action.kind for action in self.schedule.actions), self._faults
        return {kind: FaultCount(drawn[kind], faults.happened[kind], faults.effective[kind]) for kind in sorted(drawn)}

    async def eventually(
        self,
        condition: Callable[[], object],
        invariant: str,
        *,
        within_s: float = 60,
        text: Callable[[], str] | None = None,
    ) -> None:
        """Wait until `condition()`, which may be async, is true.

        Raises InvariantError, with the text that `text()` returns, after `within_s` virtual seconds.
        """
        end = self._loop.time() + within_s
        while True:
            with _noted(invariant, "until it is true"):
                value = condition()
                if isinstance(value, Coroutine):
                    value = await value
            if value:
                return
            if self._loop.time() >= end:
                raise InvariantError(invariant, text() if text else f"not within {within_s:g} s")
            await asyncio.sleep(POLL_INTERVAL_S)

    def check(self, condition: Callable[[], object], invariant: str) -> None:
        """From now on require `condition()` to be true at every moment of virtual time.

        The run fails with InvariantError at the first moment in which it is false. It must be quick and change nothing.
        """
        self._claims[invariant] = condition
        self.watch(self._check_claims)

    def _check_claims(self) -> None:
        for invariant, condition in self._claims.items():
            if not _evaluate(condition, invariant, "at every moment, also after the test's last line"):
                raise InvariantError(invariant, f"at {self._loop.time():g} s")

    def sometimes(self, condition: Callable[[], object], name: str) -> None:
        """From now on look for a moment in which `condition()` is true; a search in which no seed has one fails.

        It must be quick and change nothing. It is not called again once it was true.
        """
        self.seen.setdefault(name, False)
        self._sought[name] = condition
        self.watch(self._seek)

    def _seek(self) -> None:
        for name, condition in list(self._sought.items()):
            if _evaluate(condition, name, "at every moment until it is true"):
                del self._sought[name]
                self._saw(name)

    def reached(self, name: str) -> None:
        """Note that a worker has reached a place in its code; a search in which no seed reaches it fails.

        To be detected, a place that no seed reaches must be named by a literal in the test or a function of its module.
        """
        self._saw(name)

    def _saw(self, name: str) -> None:
        if not self.seen.get(name):
            self.seen[name] = True
            process = PROCESS.get()
            self.note(process.name if process else "test", f"seen: {name}")

    def watch(self, watcher: Callable[[], object]) -> None:
        """Call `watcher()` after the first step of each moment; its errors end the run."""
        if watcher not in self._watchers:
            self._watchers.append(watcher)
        self._loop.after_step = self._after_step

    def _after_step(self) -> None:
        now_ns = self._loop.clock.now_ns
        if now_ns != self._seen_ns:
            self._seen_ns = now_ns
            self.look()

    def look(self) -> None:
        """Call all watchers, as in each moment; called at the end for the last step."""
        for watcher in self._watchers:
            watcher()

    def note(self, who: str, what: str) -> None:
        """Add a line to the time line of the report."""
        self.timeline.note(who, what)

    def end(self) -> None:
        """End all workers; warnings of what they leave open are not noted."""
        self._has_ended = True
        self._loop.after_step = None
        for worker in self.workers:
            worker.end()

    def on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle unhandled errors: errors of a program's environment do not fail the test."""
        error = context.get("exception")
        if error is None:  # an unclosed client or a task that was not awaited: not a failure
            if not self._has_ended:
                self.note("python", context["message"])
            return
        future = context.get("task") or context.get("future")
        process = self._process_of(future)
        # A plain future has no owner, and is reported only when it is garbage-collected.
        has_no_owner = isinstance(future, asyncio.Future) and not isinstance(future, asyncio.Task)
        if (process is not None or has_no_owner) and is_of_the_environment(error):
            self.note(process.name if process else "python", f"unhandled: {error_text(error)}")
        else:
            loop.default_exception_handler(context)

    def _process_of(self, future: object) -> Process | None:
        """Return the process of a task, by default the one that runs now."""
        if isinstance(future, asyncio.Task):
            for process in self._loop.processes:
                if future in process.tasks:
                    return process
        return PROCESS.get()
