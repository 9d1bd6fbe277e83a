"""Ends a run that would not end: a limit on virtual time, deadlocks, livelocks.

A hung application with a periodic timer would otherwise run for ever, in virtual time at full speed.
"""

from __future__ import annotations

import gc
import math
import sys
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from broker_sim.runtime.virtual.core.clock import delay_to_ns
from broker_sim.runtime.virtual.core.errors import VirtualDeadlockError, VirtualLivelockError, VirtualTimeLimitError
from broker_sim.runtime.virtual.core.locations import describe_spinners, describe_waiting, spinner_of

if TYPE_CHECKING:
    from asyncio import Handle
    from collections.abc import Iterator

    from broker_sim.runtime.virtual.core.clock import LoopClock
    from broker_sim.runtime.virtual.core.core import Core
    from broker_sim.runtime.virtual.threads import Workers

STEPS_IN_REPORT: Final = 1_000
"""Number of further callbacks that the report of a livelock counts."""


class TimeLimit:
    """The limit on a run's virtual time, and on that of its shutdown."""

    def __init__(self, clock: LoopClock, limit_s: float | None) -> None:
        self._clock = clock
        self._given_ns = math.inf if limit_s is None else delay_to_ns(limit_s)
        self._given = "" if limit_s is None else f"more than the allowed {float(limit_s)} s pass"
        self.limit_ns = self._given_ns
        """The time in ns that the clock may not pass."""
        self.what = self._given
        """The message for a run that reaches it."""

    def limit_shutdown(self, seconds: float) -> None:
        """Limit the run, which has failed or is over, to that many virtual seconds from now, whatever was left."""
        self._given_ns = self._clock.now_ns + delay_to_ns(seconds)
        self._given = _shutdown_message(seconds)
        self.lift()

    def shorten(self, seconds: float) -> None:
        """Limit the run, which seems to end, to at most that many virtual seconds from now, until `lift`."""
        limit_ns = self._clock.now_ns + delay_to_ns(seconds)
        if limit_ns < self._given_ns:
            self.limit_ns, self.what = limit_ns, _shutdown_message(seconds)

    def lift(self) -> None:
        """Undo `shorten`."""
        self.limit_ns, self.what = self._given_ns, self._given


def _shutdown_message(seconds: float) -> str:
    return f"more than the allowed {seconds} s pass at the end of the run"


class Guards:
    """The limits of one loop."""

    def __init__(
        self, core: Core, workers: Workers, limit_s: float | None, collect_every: int, max_steps_at_one_time: int
    ) -> None:
        self._core = core
        self._workers = workers
        self.time_limit = TimeLimit(core.clock, limit_s)
        self._collect_every = collect_every
        self._max_still_steps = max_steps_at_one_time
        self._still_steps = 0
        self._progress_ns = -1
        self.checkpoint = collect_every
        """The step at which `on_checkpoint` is called next."""

    def check_limit(self, now_ns: int) -> None:
        """Raise VirtualTimeLimitError if that time is beyond the limit."""
        if now_ns > self.time_limit.limit_ns:
            raise VirtualTimeLimitError(self._report(self.time_limit.what))

    def deadlock(self) -> VirtualDeadlockError:
        """Return the error for a loop without ready callbacks and timers."""
        return VirtualDeadlockError(self._report("nothing is ready and no timer runs"))

    def on_checkpoint(self, steps: int, next_steps: Iterator[Handle]) -> None:
        """Collect garbage. Raises VirtualLivelockError if the time has not moved for too many callbacks.

        `next_steps` runs the next callbacks and yields their handles, for the report.
        """
        gc.collect()
        self.checkpoint = steps + self._collect_every
        progress_ns = self._core.queue.busy_wait.progress_ns
        if progress_ns != self._progress_ns:
            self._progress_ns = progress_ns
            self._still_steps = 0
            return
        self._still_steps += self._collect_every
        if self._still_steps >= self._max_still_steps:
            raise self._livelock(next_steps)

    def _livelock(self, next_steps: Iterator[Handle]) -> VirtualLivelockError:
        """Run some more callbacks; return the error, which names those that run most often."""
        next_checkpoint, self.checkpoint = self.checkpoint, sys.maxsize
        ran: Counter[Any] = Counter(spinner_of(handle) for handle in islice(next_steps, STEPS_IN_REPORT))
        self.checkpoint = next_checkpoint + ran.total()
        return VirtualLivelockError(
            f"{self._still_steps} callbacks ran and the time does not move, {self._core.when()}; the "
            f"most frequent of {ran.total()} more callbacks:\n{describe_spinners(ran)}"
        )

    def _report(self, what: str) -> str:
        waiting = describe_waiting(self._core.loop) + self._workers.describe()
        for program in list(self._core.programs):
            waiting += f"\n{program.describe().rstrip()}"
        return f"{what}, {self._core.when()}; where it waits:\n{waiting}"
