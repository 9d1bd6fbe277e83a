"""Which of the callbacks that are ready runs first: in asyncio the oldest one, here also another one.

A loop without a `TaskOrder` is first in, first out. With one it takes the oldest callback too, but for
deviations: those of chance (`SeededOrder`), or given ones (`GivenOrder`), such as chance has taken before.
"""

from __future__ import annotations

import asyncio
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from broker_sim.runtime.virtual.current_process import PROCESS

if TYPE_CHECKING:
    from asyncio import Handle
    from collections import deque
    from collections.abc import Callable, Iterable

    from broker_sim.runtime.virtual.clock import LoopClock

__all__ = ["Deviation", "GivenOrder", "SeededOrder", "TaskOrder"]


class Deviation(NamedTuple):
    """A callback that runs before others that have been ready for longer."""

    at_ns: int
    """When, in nanoseconds since the loop was made."""
    step: int
    """How many callbacks have run at that time before."""
    place: int
    """How many are ready for longer."""


class TaskOrder:
    """Arranges the queue of one loop, and keeps what deviated from first in, first out."""

    def __init__(self, clock: LoopClock) -> None:
        self.on_deviation: Callable[[list[Handle]], object] | None = None
        """Called with those that are ready, the oldest first, the one that runs next last."""
        self._clock = clock
        self._at_ns = -1
        self._step = 0
        self._taken = array("q")

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """All so far."""
        numbers = iter(self._taken)
        return tuple(map(Deviation, numbers, numbers, numbers))

    def arrange(self, ready: deque[Handle]) -> None:
        """Put what runs next in front; called before each callback."""
        if self._at_ns != self._clock.now_ns:
            self._at_ns = self._clock.now_ns
            self._step = 0
        place = self.choose(ready, self._at_ns, self._step)
        if place:
            self._taken.extend((self._at_ns, self._step, place))
            handle = ready[place]
            if self.on_deviation is not None:
                self.on_deviation([*ready][: place + 1])
            del ready[place]
            ready.appendleft(handle)
        self._step += 1

    def choose(self, ready: deque[Handle], at_ns: int, step: int) -> int:
        """Return the place of what runs next; 0 is the oldest."""
        raise NotImplementedError


class SeededOrder(TaskOrder):
    """If the next callback is a task's, chance decides which of the tasks comes first."""

    def __init__(self, clock: LoopClock, random: Callable[[], float]) -> None:
        super().__init__(clock)
        self._random = random

    def choose(self, ready: deque[Handle], at_ns: int, step: int) -> int:
        """Draw a place; the tasks behind it come into question too."""
        del at_ns, step
        if len(ready) > 1 and _is_of_task(ready[0]):
            for place in range(int(self._random() * len(ready)), len(ready)):
                if _is_of_task(ready[place]):
                    return place
        return 0


class GivenOrder(TaskOrder):
    """Takes given deviations, as far as there is something at their place that may go first."""

    def __init__(self, clock: LoopClock, deviations: Iterable[Deviation]) -> None:
        super().__init__(clock)
        self._places = {(at_ns, step): place for at_ns, step, place in deviations}

    def choose(self, ready: deque[Handle], at_ns: int, step: int) -> int:
        """Return the given place."""
        place = self._places.get((at_ns, step), 0)
        return place if place < len(ready) and _may_go_first(ready, place) else 0


def _may_go_first(ready: deque[Handle], place: int) -> bool:
    """Whether it is a task, or all before it belong to others: the callbacks of one keep their order.

    That is promised by asyncio, and transports rely on it.
    """
    if _is_of_task(ready[place]):
        return True
    process = process_of(ready[place])
    return process is not None and all(
        process_of(ready[before]) is not process for before in range(place)
    )


def process_of(handle: Any) -> Any:
    """Return the process of a callback; None for those of the test, the brokers and the network."""
    return handle._context.get(PROCESS)


def _is_of_task(handle: Any) -> bool:
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)
