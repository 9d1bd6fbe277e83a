"""The periodic tasks of the controller.

Mirrors `PeriodicTaskControlManager`: a task runs every period, and again after 10 ms while it
returns True for more work. Deliberate differences:

- nothing is scheduled here; the owner calls `run_due` at `next_run_ms`
- a task that expires broker sessions waits for one more period if it is late by a period or more: the whole
  process was stalled, and heartbeats sent in that time are still unread. Kafka's controller, a separate
  process, records heartbeats as they arrive
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from broker_sim.metadata import MetadataDelta

_AGAIN_AFTER_MS: Final = 10

Work = Callable[[MetadataDelta], bool]
"""Writes its changes into the delta; returns True if it should run again soon."""


@dataclass(slots=True)
class _PeriodicTask:
    work: Work
    period_ms: int
    next_run_ms: int
    waits_when_late: bool
    has_waited: bool = False

    def is_held_up(self, now_ms: int) -> bool:
        """Whether the task must wait; never twice in a row, otherwise it might never run on a slow machine."""
        late_ms = now_ms - self.next_run_ms
        return self.waits_when_late and not self.has_waited and late_ms >= self.period_ms


class PeriodicTasks:
    """The tasks of one controller; all times are its clock's, in milliseconds."""

    def __init__(self) -> None:
        self._tasks: list[_PeriodicTask] = []

    def register(self, work: Work, period_ms: int, now_ms: int, *, waits_when_late: bool = False) -> None:
        """Run `work` every `period_ms`, the first time after one period."""
        assert period_ms > 0
        self._tasks.append(_PeriodicTask(work, period_ms, now_ms + period_ms, waits_when_late))

    def next_run_ms(self) -> int:
        """Return the time at which the next task is due."""
        return min(task.next_run_ms for task in self._tasks)

    def run_due(self, delta: MetadataDelta, now_ms: int) -> None:
        """Run each task that is due, once."""
        for task in self._tasks:
            if task.next_run_ms <= now_ms:
                task.has_waited = task.is_held_up(now_ms)
                task.next_run_ms = now_ms + task.period_ms  # also if the work fails
                if not task.has_waited and task.work(delta):
                    task.next_run_ms = now_ms + _AGAIN_AFTER_MS
