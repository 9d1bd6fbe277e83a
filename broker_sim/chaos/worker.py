"""A worker: a program of a test that faults and its own errors stop and restart."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.faults.action import BROKERS
from broker_sim.errors import WrongStateError
from broker_sim.runtime.virtual.core.clock import NS_PER_SECOND
from broker_sim.runtime.virtual.network import ANY

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from broker_sim.chaos.faults.cluster_faults import ClusterFaults
    from broker_sim.chaos.timeline import Timeline
    from broker_sim.runtime.virtual import VirtualEventLoop
    from broker_sim.runtime.virtual.core.processes import Process
    from broker_sim.runtime.virtual.network import Network

    Main = Callable[..., Coroutine[Any, Any, object]]
    Undo = Callable[[], bool]

GRACE_S: Final = 10.0
"""Seconds that a worker has to stop after the request; Kubernetes allows 30 s, but faults last 20."""
DEPLOY_INTERVAL_S: Final = 1.0
"""Seconds between the start of a worker and the stop of the next one in a rolling deploy."""
RESTART_S: Final = 1.0
"""Seconds before a worker that ended with an error of its environment is restarted, as by a supervisor."""
IDLE_S: Final = 3
"""Seconds without traffic after which a worker that waits for no broker counts as idle; group members never are."""
_CLIENT_ERRORS: Final = {"KafkaError", "KafkaException"}
"""Names of the base classes of aiokafka's, kafka-python's and confluent-kafka's errors."""


def is_of_the_environment(error: BaseException) -> bool:
    """Whether a program may end with that error when its brokers or its network fail.

    An exception group, as a TaskGroup raises, is one if all its errors are.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_of_the_environment, error.exceptions))
    if isinstance(error, (OSError, TimeoutError, asyncio.CancelledError)):
        return True
    return any(kind.__name__ in _CLIENT_ERRORS for kind in type(error).__mro__)


def cause_of(error: BaseException) -> BaseException:
    """Return the most telling error of an exception group: its first bug, or without one its first error."""
    while isinstance(error, BaseExceptionGroup):
        bugs = [one for one in error.exceptions if not is_of_the_environment(one)]
        error = (bugs or error.exceptions)[0]
    return error


def error_text(error: BaseException) -> str:
    """Return the type of an error, or of the cause of a group, and the first line of its text, once."""
    error = cause_of(error)
    name = type(error).__name__
    first, *_ = str(error).splitlines() or [""]
    first = first.removeprefix(f"{name}: ")  # aiokafka's errors begin with it
    return f"{name}: {first}" if first else name


class Worker:
    """A worker with a host of its own, on which each start is a new process.

    `main` is a coroutine function; it gets the worker if it takes an argument.
    """

    def __init__(self, loop: VirtualEventLoop, timeline: Timeline, name: str, versions: Sequence[Main]) -> None:
        """`versions`: the worker runs the first, and after each deploy the next one, until there is no further one."""
        self.name = name
        self.process: Process | None = None
        """The running or frozen process; None while there is none."""
        self.starts = 0
        """Number of starts."""
        self._loop = loop
        self._timeline = timeline
        self.version = 0
        """Index of the current version."""
        self.versions = versions
        self._task: asyncio.Task[object] | None = None
        self._is_asked_to_stop = False
        self._holds = 0
        self._failures = 0
        self._failed_calls = 0
        self._clock_offset_s = 0.0
        self._start_takes_s = 0.0
        self._is_over = False
        self._releases: list[Callable[[], object]] = []
        """Callbacks for the end of the current process, in the order of `on_death`."""
        self._crash_now: Callable[[], object] | None = None

    def __repr__(self) -> str:
        return f"<Worker {self.name}: {'down' if self.process is None else self.process.state}>"

    def depend(self, on: str = "the dependency") -> None:
        """Simulate a call to a dependency other than Kafka, which may fail.

        Raises ConnectionError while a fault `fail` is in force.
        """
        if self.is_failing:
            raise ConnectionError(f"{on} cannot be reached")

    def on_death(self, release: Callable[[], object]) -> None:
        """Call `release()` when the current process has ended for any reason.

        An operating system releases the resources of a process, such as file locks: `worker.on_death(database.close)`.
        """
        self._releases.append(release)

    def on_crash(self, crash: Callable[[], object]) -> None:
        """Make a fault `crash` call `crash()`, which soon ends the current process, so that `main` returns.

        A process that still runs when the fault is over is killed then.
        """
        self._crash_now = crash

    @property
    def is_failing(self) -> bool:
        """Whether a fault `fail` is in force; read by a simulated dependency at each call."""
        self._failed_calls += bool(self._failures)
        return bool(self._failures)

    def start(self) -> None:
        """Start the program in a new process."""
        self.starts += 1
        process = self.process = self._loop.process(self.name)
        process.step_clock(self._clock_offset_s)
        main = self.versions[self.version]
        takes_worker = bool(inspect.signature(main).parameters)
        self._task = process.start(process.call(main, *[self][: int(takes_worker)]))
        self._task.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[object]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        self._end()
        if self._is_asked_to_stop and (error is None or is_of_the_environment(error)):
            self._timeline.note(self.name, "has stopped")
        elif error is None:
            self._timeline.note(self.name, "is done")
        elif is_of_the_environment(error):
            self._timeline.note(self.name, f"exits: {error_text(error)}", error_text(error))
            self._loop.call_later(RESTART_S, self._start_again)
        else:
            self._timeline.note(self.name, f"fails: {error_text(error)}", error_text(error))
            self._loop.call_exception_handler({"message": f"{self.name} fails", "exception": error, "task": task})

    def _end(self) -> None:
        process, self.process = self.process, None
        self._task = self._crash_now = None
        if process is not None:
            process.kill()
        releases, self._releases = self._releases, []
        for release in reversed(releases):
            release()

    def _start_again(self) -> None:
        if self._start_takes_s:
            self._loop.call_later(self._start_takes_s, self._start_now)
        else:
            self._start_now()

    def _start_now(self) -> None:
        if self.process is None and not self._holds and not self._is_over:
            self._timeline.note(self.name, "starts again")
            self.start()

    def end(self) -> None:
        """End the worker for good: the run is over."""
        self._is_over = True
        self._end()

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """Stop the worker and keep it down: cancel its task, so that `finally` blocks run; kill it after `grace_s`.

        A command gets SIGTERM instead.
        """
        self._holds += 1
        process, task = self.process, self._task
        if process is None or task is None:
            return
        self._is_asked_to_stop = True
        self._timeline.note(self.name, "is asked to stop")
        task.cancel()
        await asyncio.wait([task], timeout=grace_s)
        self._is_asked_to_stop = False
        if self.process is process:
            self._timeline.note(self.name, f"has not stopped within {grace_s:g} s, and is killed")
            self._end()

    def continue_after_stop(self, *, in_next_version: bool = False) -> None:
        """Restart the worker after `stop`, unless something else keeps it down."""
        self._holds -= 1
        if in_next_version and self.version + 1 < len(self.versions):
            self.version += 1
        self._start_now()

    # -- faults; each returns a function that ends it and returns whether it took effect ---------------------
    # A fault that the state of the worker does not allow raises WrongStateError.

    def crash(self) -> Callable[[], object]:
        """Kill the worker, and keep it down until the fault is over."""
        process = self._running()
        self._holds += 1
        (self._crash_now or self._end)()

        def restart() -> None:
            self._holds -= 1
            if self.process is process:
                self._end()
            self._start_again()

        return restart

    def freeze(self) -> Undo:
        """Freeze the worker; effective if a timer became due or data arrived meanwhile."""
        process = self._running()
        process.freeze()

        def thaw() -> bool:
            is_overdue = process.is_overdue(self._loop.clock.now_ns)
            if process.state == "frozen":
                process.resume()
            return is_overdue

        return thaw

    def fail(self) -> Undo:
        """Make `depend` fail; effective if it was called meanwhile."""
        self._failures += 1
        calls = self._failed_calls

        def mend() -> bool:
            self._failures -= 1
            return self._failed_calls > calls

        return mend

    def slow_start(self, seconds: float) -> Callable[[], object]:
        """Kill the worker; until the fault is over each start takes `seconds`."""
        self._running()
        self._start_takes_s += seconds
        self._end()
        self._start_again()

        def end() -> None:
            self._start_takes_s -= seconds

        return end

    def shift_clock(self, seconds: float) -> Undo:
        """Shift the worker's wall clock; effective if it was running at the beginning or at the end."""
        self._step_clock(seconds)
        has_run = self.process is not None

        def set_right() -> bool:
            self._step_clock(-seconds)
            return has_run or self.process is not None

        return set_right

    def _step_clock(self, seconds: float) -> None:
        self._clock_offset_s += seconds
        if self.process is not None:
            self.process.step_clock(seconds)

    def _running(self) -> Process:
        process = self.process
        if process is None or process.state != "running":
            raise WrongStateError(f"{self.name} is not running")
        return process


class WorkerFaults:
    """The faults of the workers of one run, as methods named after their kinds."""

    def __init__(
        self,
        workers: Sequence[Worker],
        network: Network,
        cluster_faults: ClusterFaults,
        start: Callable[[Sequence[Main]], Worker],
    ) -> None:
        """`start(versions)` starts one more worker."""
        self._workers = workers
        self._start = start
        self._network = network
        self._cluster_faults = cluster_faults

    def _worker(self, number: int) -> Worker:
        if not 0 < number <= len(self._workers):
            raise WrongStateError(f"the test has started {len(self._workers)} workers")
        return self._workers[number - 1]

    def _is_at_work(self, worker: Worker) -> bool:
        """Whether the worker waits for a broker or had traffic recently, as group members always have.

        A worker without connections counts as busy, because other work cannot be observed.
        """
        connections = self._network.connections_of(worker.name)
        idle_since_ns = self._network.core.clock.now_ns - IDLE_S * NS_PER_SECOND
        return not connections or any(pipe.awaits_answer or pipe.last_ns > idle_since_ns for pipe in connections)

    def crash(self, number: int) -> Undo:
        """Kill a worker; the end restarts it; effective if it was busy."""
        worker = self._worker(number)
        return _with_effect(worker.crash, took_effect=self._is_at_work(worker))

    def freeze(self, number: int) -> Undo:
        """Freeze a worker."""
        return self._worker(number).freeze()

    def fail(self, number: int) -> Undo:
        """Make a worker's dependency fail."""
        return self._worker(number).fail()

    def slow_start(self, number: int, seconds: str) -> Undo:
        """Kill a worker; until the fault is over each start takes `seconds`."""
        worker = self._worker(number)
        return _with_effect(partial(worker.slow_start, float(seconds)), took_effect=self._is_at_work(worker))

    def deploy(self, number: int | None, how: str) -> asyncio.Task[bool]:
        """Stop workers and start them in their next version, one by one or all at once."""
        workers = [self._worker(number)] if number is not None else [*self._workers]
        if not workers:
            raise WrongStateError("the test has not started any workers")
        return asyncio.get_running_loop().create_task(self._deploy(workers, at_once=how == "all"))

    async def _deploy(self, workers: Sequence[Worker], *, at_once: bool) -> bool:
        took_effect = any(worker.process is not None and self._is_at_work(worker) for worker in workers)
        for together in [workers] if at_once else [[worker] for worker in workers]:
            await asyncio.gather(*(worker.stop() for worker in together))
            for worker in together:
                worker.continue_after_stop(in_next_version=True)
            if not at_once:
                await asyncio.sleep(DEPLOY_INTERVAL_S)
        return took_effect

    def scale(self, _number: int | None, by: str) -> Callable[[], asyncio.Task[bool]]:
        """Start more workers like the last one, or stop the last ones, until the fault is over."""
        loop, count = asyncio.get_running_loop(), int(by)
        if not self._workers:
            raise WrongStateError("the test has not started any workers")
        if count > 0:
            versions = self._workers[-1].versions[self._workers[-1].version :]
            more = [self._start(versions) for _ in range(count)]
            return lambda: loop.create_task(self._stop(more))
        fewer = [worker for worker in self._workers if worker.process is not None][count:]
        stopping = loop.create_task(self._stop(fewer))

        async def start_again() -> bool:
            took_effect = await stopping
            for worker in fewer:
                worker.continue_after_stop()
            return took_effect

        return lambda: loop.create_task(start_again())

    async def _stop(self, workers: Sequence[Worker]) -> bool:
        took_effect = any(worker.process is not None and self._is_at_work(worker) for worker in workers)
        await asyncio.gather(*(worker.stop() for worker in workers))
        return took_effect

    def clock(self, number: int, seconds: str) -> Undo:
        """Shift the wall clock of a worker's host."""
        return self._worker(number).shift_clock(float(seconds))

    def cut(self, number: int, far_end: str, direction: str) -> Undo:
        """Cut a worker off from one or all brokers, in one or both directions."""
        worker, far = self._worker(number), ANY
        if far_end != BROKERS:
            far = self._cluster_faults.address(int(far_end.partition("-")[2]))
        ways = {"to": [(worker.name, far)], "from": [(far, worker.name)]}
        both = ways["to"] + ways["from"]
        return self._cluster_faults.combined.cut_clients(*ways.get(direction, both))

    def slow(self, number: int, latency_ms: str) -> Undo:
        """Delay messages to and from a worker; effective if there were any."""
        name = self._worker(number).name
        began_ns = self._network.core.clock.now_ns
        ways = [(name, ANY), (ANY, name)]
        for source, target in ways:
            self._network.set_latency(source, target, float(latency_ms))

        def undo() -> bool:
            for source, target in ways:
                self._network.set_latency(source, target, None)
            return any(pipe.last_ns > began_ns for pipe in self._network.connections_of(name))

        return undo


def _with_effect(begin: Callable[[], Callable[[], object]], *, took_effect: bool) -> Undo:
    """Begin a fault; return a function that ends it and returns `took_effect`."""
    end = begin()

    def undo() -> bool:
        end()
        return took_effect

    return undo
