"""Runs a program in virtual time: as `asyncio.run` does in real time, piece by piece, or stepped from outside."""

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
"""Longest virtual time that the end of a run may take, from its failure or its last step on.

Clients need less: a rebalance takes 5 minutes at the most, and requests and transactions a minute.
"""
FROZEN_BY_PYTHON = 1_000
"""More than CPython freezes itself when it starts, 375 objects in 3.12.1, and less than its modules have."""
RUNS_PER_COLLECTION = 50
"""A run of brokers leaves half a megabyte; a collection of all objects takes 40 ms, and more in large programs."""

_runs = count(1)
_around: list[None] = []
"""Not empty inside `garbage_of_one_run`."""


def run(
    main: Callable[[VirtualEventLoop], Coroutine[Any, Any, Result]],
    seed: int = 0,
    **options: Any,
) -> Result:
    """Run `main(loop)` on a new virtual loop and return its result.

    `options` are those of `VirtualEventLoop`. What the program raises is raised, and also what it
    failed to take: the error of a task or of a callback, a deadlock, a livelock, too much virtual
    time. A note says the seed, the virtual time and the last events of the trace.
    """
    this = VirtualRun(seed, **options)
    try:
        result = this.wait(main(this.loop))
        this.raise_what_nobody_took()
        this.close()
    except BaseException as error:
        try:
            this.close()
        except BaseException as later:  # noqa: BLE001 - the first error is the one that counts
            _note_later(error, later)
        error.add_note(this.report())
        raise
    return result


class VirtualRun:
    """A virtual loop on which a program runs piece by piece, from here until `close`.

    The standard library tells virtual time and seeded chance to the program (see `stdlib`), from
    the first run of a process on for good. A run repeats in another process unless the program itself
    iterates sets of strings: for that, see `pin_hash_seed`. Garbage is collected by the loop only.
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
        if not _around:
            self._resources.enter_context(_own_garbage())

    def wait(self, coroutine: Coroutine[Any, Any, Result], *, name: str | None = None) -> Result:
        """Run a coroutine to its end in a task of that name, and all that is due meanwhile.

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
        """Do nothing; to be overridden by what needs the error of `wait` before its task is ended."""

    def start(self, coroutine: Coroutine[Any, Any, Result], *, name: str | None = None) -> asyncio.Task[Result]:
        """Return a task of the coroutine; it runs in `wait` and `wait_for`."""
        return self.loop.create_task(coroutine, name=name, context=self._context)

    def wait_for(self, future: asyncio.Future[Result]) -> Result:
        """Run what is due until the future is done; return its result."""
        try:
            return self.loop.run_until_complete(future)
        except BaseException:
            self._let_it_end()
            raise

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function on the loop, as its callbacks are called; return its result."""
        if self.loop.is_running():
            return function(*args, **kwargs)
        return self._context.run(partial(self.loop.run_now, function, *args, **kwargs))

    def raise_what_nobody_took(self) -> None:
        """Raise the error of a task or callback that nobody took, if there is one."""
        gc.collect()  # the error of a task that nobody awaited is known once the task is gone
        self.loop.raise_failure()

    def close(self) -> None:
        """End all tasks, and the loop; raises what they raise. Idempotent."""
        self._let_it_end()
        with self._resources:
            self._runner.close()
            self.loop.raise_failure()

    def report(self) -> str:
        """Return the seed, the virtual time and the last events of the trace, in words."""
        loop = self.loop
        events = "\n".join(f"  {event:.160}" for event in loop.trace.recent[-12:])
        return (
            f"seed {loop.seed}, {loop.time()} s of virtual time, trace {loop.trace.digest()[:16]}; "
            f"last events:\n{events or '  none'}"
        )

    def _let_it_end(self) -> None:
        """Give the program time to end, unwatched: what failed may fail again before any task ends."""
        self.loop.time_limit.let_end(ENDING_S)
        self.loop.after_step = None
        self.loop.processes.kill_frozen()

    def _end(self, task: asyncio.Task[Any], error: BaseException) -> None:
        """End a task whose run failed: its contexts close while the rest of the program is there."""
        if task.cancel():
            try:
                self.loop.run_until_complete(task)
            except asyncio.CancelledError:
                pass
            except BaseException as later:  # noqa: BLE001 - the first error is the one that counts
                _note_later(error, later)


class VirtualScheduler(Scheduler):
    """A scheduler on a virtual loop of its own: time moves only in `step` and `advance_to`. Single-threaded."""

    loop: VirtualEventLoop

    def __init__(self, seed: int = 0) -> None:
        super().__init__(VirtualEventLoop(seed, limit_s=None))

    def step(self) -> bool:
        """Run one callback, jumping to its time first; False if nothing is left to happen."""
        return self.loop.step()

    def advance_to(self, time_ms: int) -> None:
        """Run everything that is due until `time_ms`, and end there."""
        self.loop.advance_to_ns(time_ms * NS_PER_MS)


def _note_later(error: BaseException, later: BaseException) -> None:
    error.add_note(f"and then, while its tasks were ended: {later!r}")


@contextmanager
def _own_garbage() -> Iterator[None]:
    """Let the collections in a run find what belongs to the run, and nothing of before.

    So the finalizers of another run's objects do not act on this one, and a collection takes no
    time: without this it is 40 ms where pytest and a client library are imported. The one at the end
    throws the run's own objects away, which nobody else would look for.

    If the caller has frozen objects, they stay frozen. No more are frozen then, because they could not be
    told apart afterwards; existing garbage is collected before the run instead.

    What the caller still holds when its run ends is garbage later, and old. Python looks for old
    garbage seldom, and hardly ever between two runs: so a run looks for it, after some others.
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
    """Collect all garbage of a run that begins and ends inside, what its caller held too.

    For programs of many runs, around each: the garbage is found at once, in a quarter of the time, because
    it need not be looked for among the objects of the whole program.
    """
    with _own_garbage():
        _around.append(None)
        try:
            yield
        finally:
            _around.pop()
