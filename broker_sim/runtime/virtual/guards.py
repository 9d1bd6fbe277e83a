"""What ends a run that would not end: a limit on virtual time, deadlocks, livelocks, failures.

A hung application with a periodic timer would otherwise run for ever, and in virtual time that
means: at full speed.
"""

from __future__ import annotations

import asyncio
import gc
import math
import sys
from asyncio.base_events import _run_until_complete_cb  # type: ignore[attr-defined]
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from broker_sim.runtime.virtual.clock import delay_to_ns
from broker_sim.runtime.virtual.errors import (
    UnhandledError,
    VirtualDeadlockError,
    VirtualLivelockError,
    VirtualTimeLimitError,
)
from broker_sim.runtime.virtual.waiting import describe_spinners, describe_waiting, spinner_of

if TYPE_CHECKING:
    from asyncio import Handle
    from collections.abc import Iterable

    from broker_sim.runtime.virtual.clock import LoopClock
    from broker_sim.runtime.virtual.loop import VirtualEventLoop

LOOKED_AT: Final = 1_000
"""How many callbacks of a livelock are looked at for its report."""


class TimeLimit:
    """How much virtual time a run may take, and how much of it its end."""

    def __init__(self, clock: LoopClock, limit_s: float | None) -> None:
        self._clock = clock
        self._given_ns = math.inf if limit_s is None else delay_to_ns(limit_s)
        self._given = "" if limit_s is None else f"more than the allowed {float(limit_s)} s pass"
        self.limit_ns = self._given_ns
        """The clock may not move beyond that."""
        self.what = self._given
        """What is told of a run that is there."""

    def let_end(self, seconds: float) -> None:
        """Give the run so much virtual time from now, no more and no less: it has failed or is over."""
        self._given_ns = self._clock.now_ns + delay_to_ns(seconds)
        self._given = _of_the_end(seconds)
        self.lift()

    def shorten(self, seconds: float) -> None:
        """Give the run no more than so much virtual time from now, until `lift`: it seems to end."""
        limit_ns = self._clock.now_ns + delay_to_ns(seconds)
        if limit_ns < self._given_ns:
            self.limit_ns, self.what = limit_ns, _of_the_end(seconds)

    def lift(self) -> None:
        """Take `shorten` back."""
        self.limit_ns, self.what = self._given_ns, self._given


def _of_the_end(seconds: float) -> str:
    return f"more than the allowed {seconds} s pass at the end of the run"


class Guards:
    """Watches one loop."""

    def __init__(
        self, loop: VirtualEventLoop, limit_s: float | None, collect_every: int, max_steps_at_one_time: int
    ) -> None:
        self._loop = loop
        self.time_limit = TimeLimit(loop.clock, limit_s)
        self._collect_every = collect_every
        self._max_still_steps = max_steps_at_one_time
        self._still_steps = 0
        self._progress_ns = -1
        self.checkpoint = collect_every
        """The step at which `on_checkpoint` is called next."""
        self.failure: BaseException | None = None
        """The first failure that no code of the program took."""

    def check_limit(self, now_ns: int) -> None:
        """Raise VirtualTimeLimitError if the run may not get to that time."""
        if now_ns > self.time_limit.limit_ns:
            raise VirtualTimeLimitError(self._report(self.time_limit.what))

    def deadlock(self) -> VirtualDeadlockError:
        """Return the error for a loop with nothing ready and no timer."""
        return VirtualDeadlockError(self._report("nothing is ready and no timer runs"))

    def on_checkpoint(self) -> None:
        """Collect garbage, and see whether the time moves: VirtualLivelockError if not."""
        gc.collect()
        self.checkpoint = self._loop.steps + self._collect_every
        progress_ns = self._loop.standstill.progress_ns
        if progress_ns != self._progress_ns:
            self._progress_ns = progress_ns
            self._still_steps = 0
            return
        self._still_steps += self._collect_every
        if self._still_steps >= self._max_still_steps:
            raise self._livelock()

    def _livelock(self) -> VirtualLivelockError:
        """Look at some more callbacks; return the error, which names those that run most."""
        loop = self._loop
        self.checkpoint = sys.maxsize
        ran: Counter[Any] = Counter()
        for _ in range(LOOKED_AT):
            if not (loop.is_ready() or loop.move_to_next()):
                break
            ran[spinner_of(loop.run_next())] += 1
        self.checkpoint = loop.steps + self._collect_every
        return VirtualLivelockError(
            f"{self._still_steps} callbacks ran and the time does not move, {self._when()}; what ran "
            f"most of {ran.total()} more callbacks:\n{describe_spinners(ran)}"
        )

    def take_failure(self, context: dict[str, Any]) -> None:
        """Keep what the loop's exception handler was told, for `raise_failure`."""
        message = context.get("message") or "Unhandled exception in event loop"
        error = context.get("exception") or UnhandledError(message)
        task = context.get("task") or context.get("future")
        name = f" in task {task.get_name()}" if isinstance(task, asyncio.Task) else ""
        error.add_note(f"{message}{name}, {self._when()}")
        if self.failure is None:
            self.failure = error

    def raise_failure(self) -> None:
        """Raise the failure, if there is one."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def _when(self) -> str:
        return f"at {self._loop.time()} s of virtual time (seed {self._loop.seed})"

    def _report(self, what: str) -> str:
        waiting = describe_waiting(self._loop) + self._loop.workers.describe()
        return f"{what}, {self._when()}; where it waits:\n{waiting}"


def cancel_stop(ready: Iterable[Handle]) -> None:
    """Cancel the stop that a future has asked for whose last step has also failed the run.

    It would stop the next run of the loop instead, in which the tasks get time to end.
    """
    for handle in ready:
        if handle._callback is _run_until_complete_cb:  # type: ignore[attr-defined]
            handle.cancel()
