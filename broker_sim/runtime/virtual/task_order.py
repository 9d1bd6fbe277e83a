"""Chooses which ready callback runs first: in asyncio always the oldest one, here possibly another.

A loop without a `TaskOrder` is first in, first out. With one it deviates at some steps: at random
(`SeededOrder`), or at given steps (`GivenOrder`), such as those recorded in a random run.
"""

from __future__ import annotations

import asyncio
import re
from array import array
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from broker_sim.runtime.virtual.core.clock import NS_PER_MS
from broker_sim.runtime.virtual.core.locations import label
from broker_sim.runtime.virtual.core.processes import PROCESS

if TYPE_CHECKING:
    from asyncio import Handle
    from collections import deque
    from collections.abc import Callable, Iterable, Sequence

    from broker_sim.runtime.virtual.core.clock import LoopClock

NAMED_OVERTAKEN: Final = 3


ORDER: Final = "order"
ARRIVAL: Final = "arrival"
_DEVIATION: Final = re.compile(r"(\d+)(?:\.(\d{1,6}))? (order|arrival) (\d+) (\d+)(?: (\d+))?")


class Deviation(NamedTuple):
    """Callbacks that run before others that were ready earlier, or a message that arrives before older ones."""

    at_ns: int
    """Nanoseconds since the loop was created."""
    step: int
    """Number of earlier callbacks at that time."""
    place: int
    """Number of callbacks that had been ready for longer than the first of these."""
    length: int = 1
    """Number of these callbacks; after the first come the oldest ones of the same process."""
    what: str = ORDER
    """"order" of callbacks, or "arrival" of messages between brokers, whose steps count messages."""

    def __str__(self) -> str:
        ms, rest = divmod(self.at_ns, NS_PER_MS)
        at = f"{ms}.{rest:06d}".rstrip("0").rstrip(".")
        length = f" {self.length}" if self.length > 1 else ""
        return f"{at} {self.what} {self.step} {self.place}{length}"

    @classmethod
    def parse(cls, line: str) -> Self:
        """Return the deviation from its text, as `str` writes it. Raises ValueError."""
        match = _DEVIATION.fullmatch(" ".join(line.split()))
        if match is None:
            raise ValueError(f"{line!r}: write a deviation as '4100.5 order 3 1', the time in ms")
        ms, rest, what, step, place, length = match.groups("0")
        at_ns = int(ms) * NS_PER_MS + int(rest.ljust(6, "0"))
        return cls(at_ns, int(step), int(place), int(length) or 1, what)


class TaskOrder:
    """Arranges the queue of one loop, and records deviations from first in, first out."""

    def __init__(self, clock: LoopClock) -> None:
        self.on_deviation: Callable[[list[Handle], int], object] | None = None
        """Called at a deviation with the ready callbacks, oldest first and the one that runs next last.

        The second argument is that callback's number in its deviation, from 1.
        """
        self._clock = clock
        self._at_ns = -1
        self._step = 0
        self._taken = array("q")
        self._last_process: str | None = None

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """All deviations so far."""
        numbers = iter(self._taken)
        return tuple(map(Deviation, numbers, numbers, numbers, numbers))

    def arrange(self, ready: deque[Handle]) -> None:
        """Move the callback that runs next to the front; called before each callback."""
        if self._at_ns != self._clock.now_ns:
            self._at_ns = self._clock.now_ns
            self._step = 0
        place = self.choose(ready, self._at_ns, self._step)
        if place:
            handle = ready[place]
            self._keep(ready, place)
            if self.on_deviation is not None:
                self.on_deviation([*ready][: place + 1], self._taken[-1])
            del ready[place]
            ready.appendleft(handle)
        self._step += 1

    def _keep(self, ready: deque[Handle], place: int) -> None:
        taken, process = self._taken, process_of(ready[place])
        if (
            process is not None
            and process == self._last_process
            and (self._at_ns, self._step) == (taken[-4], taken[-3] + taken[-1])
            and oldest_of(process, ready) == place
        ):
            taken[-1] += 1
        else:
            taken.extend((self._at_ns, self._step, place, 1))
        self._last_process = process

    def choose(self, ready: deque[Handle], at_ns: int, step: int) -> int:
        """Return the index of the callback that runs next; 0 is the oldest."""
        raise NotImplementedError


class SeededOrder(TaskOrder):
    """If the next callback is a task's, a random one of the ready tasks runs first."""

    def __init__(self, clock: LoopClock, random: Callable[[], float]) -> None:
        super().__init__(clock)
        self._random = random

    def choose(self, ready: deque[Handle], at_ns: int, step: int) -> int:
        """Draw an index, and return that of the first task from there on."""
        del at_ns, step
        if len(ready) > 1 and _is_of_task(ready[0]):
            for place in range(int(self._random() * len(ready)), len(ready)):
                if _is_of_task(ready[place]):
                    return place
        return 0


class GivenOrder(TaskOrder):
    """Repeats given deviations; one is skipped if no callback at its index may go first."""

    def __init__(self, clock: LoopClock, deviations: Iterable[Deviation]) -> None:
        super().__init__(clock)
        self._given = {(each.at_ns, each.step): each for each in deviations if each.what == ORDER}
        self._goes_on: tuple[int, int, str, int] | None = None

    def choose(self, ready: deque[Handle], at_ns: int, step: int) -> int:
        """Return the given index, or that of the next callback of the last deviation."""
        deviation, goes_on = self._given.get((at_ns, step)), self._goes_on
        self._goes_on = None
        if deviation is not None:
            place, remaining = deviation.place, deviation.length - 1
        elif goes_on is not None and goes_on[:2] == (at_ns, step):
            place, remaining = oldest_of(goes_on[2], ready), goes_on[3] - 1
        else:
            return 0
        if place >= len(ready) or not _may_go_first(ready, place):
            return 0
        process = process_of(ready[place])
        if remaining and process is not None:
            self._goes_on = at_ns, step + 1, process, remaining
        return place


def order_named(name: str, clock: LoopClock, random: Callable[[], float]) -> TaskOrder | None:
    """Return the order of that name, None for first in, first out. Raises ValueError for an unknown name."""
    if name not in {"fifo", "seeded"}:
        raise ValueError(f"order={name!r}: choose 'fifo' or 'seeded'")
    return SeededOrder(clock, random) if name == "seeded" else None


def _may_go_first(ready: deque[Handle], place: int) -> bool:
    """Whether the callback is a task's, or all before it belong to other processes.

    Other callbacks of one process keep their order: asyncio promises it, and transports rely on it.
    """
    process = process_of(ready[place])
    return _is_of_task(ready[place]) or (process is not None and oldest_of(process, ready) == place)


def oldest_of(process: str, ready: deque[Handle]) -> int:
    """Return the index of a process's oldest callback; the length of `ready` if it has none."""
    for place, handle in enumerate(ready):
        if process_of(handle) == process:
            return place
    return len(ready)


def process_of(handle: Any) -> str | None:
    """Return the process of a callback; None for those of the test, the brokers and the network."""
    process = handle._context.get(PROCESS)
    return None if process is None else process.name


def _is_of_task(handle: Any) -> bool:
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)


def deviation_text(ready: Sequence[Handle], number: int) -> str:
    """Return a text that says which callback runs before which, for the arguments of `TaskOrder.on_deviation`.

    Callbacks of the same process are left out, unless there are no others.
    """
    *overtaken, first = ready
    others = [each for each in overtaken if process_of(each) != process_of(first)]
    names = [_who(each) for each in others or overtaken]
    more = f" and {len(names) - NAMED_OVERTAKEN} more" if len(names) > NAMED_OVERTAKEN else ""
    led = f" and {number - 1} before it" if number > 1 else ""
    return f"{_who(first)}{led} run{'' if led else 's'} before {', '.join(names[:NAMED_OVERTAKEN])}{more}"


def _who(handle: Handle) -> str:
    process, what = process_of(handle), label(handle)
    return what if process in {None, what} else f"{process}'s {what}"
