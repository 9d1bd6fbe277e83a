"""Runs a program in virtual time: as a whole like `asyncio.run`, piece by piece, or stepped from outside."""

from __future__ import annotations

import asyncio
import gc
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker_sim.runtime.scheduler import Scheduler
from broker_sim.runtime.virtual.core.clock import NS_PER_MS
from broker_sim.runtime.virtual.loop import VirtualEventLoop
from broker_sim.runtime.virtual.stdlib.install import install
from broker_sim.runtime.virtual.stdlib.kafka_clients import prepare_aiokafka
from broker_sim.runtime.virtual.stdlib.other_clocks import require_real_clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

Result = TypeVar("Result")
ENDING_S: Final = 600.0
"""Maximum virtual time of a run's shutdown, counted from its failure or its last step.

Clients need less: a rebalance takes up to 5 minutes, requests and transactions up to one.
"""
FROZEN_BY_PYTHON = 1_000
"""More objects than CPython itself freezes at its start (375 in 3.12.1), fewer than the modules of a program have."""
RUNS_PER_COLLECTION = 50
"""A run with brokers leaves half a megabyte; a full collection takes 40 ms, and longer in large programs."""

_runs = count(1)
_collected_runs: list[None] = []
"""One item for each `garbage_of_one_run` that the program is inside."""


def run(
    main: Callable[[VirtualEventLoop], Coroutine[Any, Any, Result]],
    seed: int = 0,
    **options: Any,
) -> Result:
    """Run `main(loop)` on a new virtual loop and return its result.

    `options` are those of `VirtualEventLoop`. Raises what the program raises, and also what it does not handle: the
    error of a task or callback, a deadlock, a livelock, too much virtual time. A note on the error has the seed, the
    virtual time and the last events of the trace.
    """
    this = VirtualRun(seed, **options)
    try:
        result = this.wait(main(this.loop))
        this.raise_unhandled()
        this.close()
    except BaseException as error:
        try:
            this.close()
        except BaseException as later:  # noqa: BLE001 - the first error is the one to raise
            _note_later(error, later)
        error.add_note(this.report())
        raise
    return result


class VirtualRun:
    """A virtual loop on which a program runs piece by piece, until `close`.

    The standard library gives the program virtual time and seeded randomness (see `stdlib`); its replacements stay
    in place after the first run of an OS process. A run repeats in another OS process unless the program iterates sets
    of strings; see `pin_hash_seed`. Only the loop collects garbage.
    """

    def __init__(self, seed: int = 0, **options: Any) -> None:
        require_real_clocks()
        install()
        prepare_aiokafka()
        self.loop = VirtualEventLoop(seed, **options)
        self._runner = asyncio.Runner(loop_factory=lambda: self.loop)
        self._runner.get_loop()
        self._context = copy_context()
        self._resources = ExitStack()
        if not _collected_runs:
            self._resources.enter_context(_own_garbage())

    def wait(self, coroutine: Coroutine[Any, Any, Result], *, name: str | None = None) -> Result:
        """Run a coroutine to its end in a task of that name, and everything that is due meanwhile.

        Returns its result.
        """
        task = self.start(coroutine, name=name)
        try:
            return self.wait_for(task)
        except BaseException as error:
            self.on_failure(error)
            self._end(task, error)
            raise

    def on_failure(self, error: BaseException) -> None:
        """Do nothing; subclasses that need the error of `wait` before its task is ended override this."""

    def start(self, coroutine: Coroutine[Any, Any, Result], *, name: str | None = None) -> asyncio.Task[Result]:
        """Start a task, which runs during `wait` and `wait_for`; return it."""
        return self.loop.create_task(coroutine, name=name, context=self._context)

    def wait_for(self, future: asyncio.Future[Result]) -> Result:
        """Run everything that is due until the future is done; return its result."""
        try:
            return self.loop.run_until_complete(future)
        except BaseException:
            self._limit_shutdown()
            raise

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function on the loop, as a callback would be called; return its result."""
        if self.loop.is_running():
            return function(*args, **kwargs)
        return self._context.run(partial(self.loop.run_now, function, *args, **kwargs))

    def raise_unhandled(self) -> None:
        """Raise the unhandled error of a task or callback, if there is one."""
        gc.collect()  # the error of a task that nobody awaited is reported once the task is deleted
        self.loop.raise_failure()

    def close(self) -> None:
        """End all tasks and close the loop. Raises the tasks' errors. Idempotent."""
        self._limit_shutdown()
        with self._resources:
            self._runner.close()
            self.loop.raise_failure()

    def report(self) -> str:
        """Return a text with the seed, the virtual time and the last events of the trace."""
        loop = self.loop
        events = "\n".join(f"  {event:.160}" for event in loop.trace.recent[-12:])
        return (
            f"seed {loop.seed}, {loop.time()} s of virtual time, trace {loop.trace.digest()[:16]}; "
            f"last events:\n{events or '  none'}"
        )

    def _limit_shutdown(self) -> None:
        """Limit the time of the shutdown; it has no invariant checks, which might fail again before any task ends."""
        self.loop.time_limit.limit_shutdown(ENDING_S)
        self.loop.after_step = None
        self.loop.processes.kill_frozen()

    def _end(self, task: asyncio.Task[Any], error: BaseException) -> None:
        """End a task whose run failed, so that its context managers exit while the rest of the program still runs."""
        if task.cancel():
            try:
                self.loop.run_until_complete(task)
            except asyncio.CancelledError:
                pass
            except BaseException as later:  # noqa: BLE001 - the first error is the one to raise
                _note_later(error, later)


class VirtualScheduler(Scheduler):
    """A scheduler on its own virtual loop, whose time moves only in `step` and `advance_to`. Single-threaded."""

    loop: VirtualEventLoop

    def __init__(self, seed: int = 0) -> None:
        super().__init__(VirtualEventLoop(seed, limit_s=None))

    def step(self) -> bool:
        """Run one callback, jumping to its time first; return False if there is none."""
        return self.loop.step()

    def advance_to(self, time_ms: int) -> None:
        """Run everything that is due by `time_ms`; the time is `time_ms` afterwards."""
        self.loop.advance_to_ns(time_ms * NS_PER_MS)


def _note_later(error: BaseException, later: BaseException) -> None:
    error.add_note(f"and then, while its tasks were ended: {later!r}")


@contextmanager
def _own_garbage() -> Iterator[None]:
    """Restrict garbage collections in a run to objects of that run.

    So finalizers of an earlier run's objects do not act on this one, and a collection is fast: otherwise it takes
    40 ms if pytest and a client library are imported. The last collection frees the run's own objects, which
    nothing else would find.

    Objects frozen by the caller stay frozen. No others are frozen then, because they could not be told apart
    afterwards; existing garbage is collected before the run instead.

    Objects that the caller still holds when its run ends become old garbage later, which Python rarely collects
    between two runs; so every `RUNS_PER_COLLECTION`th run collects it.
    """
    was_frozen = gc.get_freeze_count() > FROZEN_BY_PYTHON
    if was_frozen or next(_runs) % RUNS_PER_COLLECTION == 0:
        gc.collect()
    if not was_frozen:
        gc.freeze()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        if not was_frozen:
            gc.unfreeze()
        if was_enabled:
            gc.enable()


@contextmanager
def garbage_of_one_run() -> Iterator[None]:
    """Collect all garbage of a run that begins and ends inside, including objects that its caller held.

    For programs with many runs, around each run: garbage is collected at once, in a quarter of the time, because the
    objects of the whole program are not searched.
    """
    with _own_garbage():
        _collected_runs.append(None)
        try:
            yield
        finally:
            _collected_runs.pop()
