"""Finds where several processes run their programs' code at the same moment, and chooses which goes first.

At one moment a process can affect another one only by its program's own code: programs of one test share
variables, which stand for a database. Libraries share none, and messages take time. So only the order of callbacks
that run the program's own code matters: these are the process's turns. Turns of one process keep their order.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from broker_sim.runtime.virtual.core.locations import is_of_a_library, is_ours
from broker_sim.runtime.virtual.task_order import TaskOrder, oldest_of, process_of

if TYPE_CHECKING:
    from asyncio import Handle
    from collections import deque
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from broker_sim.runtime.virtual.core.clock import LoopClock

SchedulingPoint = tuple[int, int]
"""The time in nanoseconds, and the number of earlier callbacks, or messages, at that time."""


class Turn(NamedTuple):
    """A callback that has run a program's own code."""

    at_ns: int
    """Nanoseconds since the loop was created."""
    step: int
    """Number of earlier callbacks at that time."""
    process: str


class ExploredOrder(TaskOrder):
    """First in, first out, except where another process is to take its turn first.

    `first` maps the time and step of a turn to the process that is to go before it.
    """

    def __init__(self, clock: LoopClock, first: Mapping[SchedulingPoint, str]) -> None:
        super().__init__(clock)
        self.has_missed = False
        """Whether a process that was to go first had no turn to take, so that the order is not new."""
        self._first = first
        self._goes_first: str | None = None
        self._turns: list[Turn] = []
        self._next: Turn | None = None
        self._has_run_program = False
        self._programs: dict[str, bool] = {}

    @property
    def turns(self) -> list[Turn]:
        """All turns so far."""
        self._note_turn()
        return self._turns

    def changes(self, behind: int) -> Iterator[tuple[SchedulingPoint, str, int]]:
        """Yield the other processes that could go first at the turns from number `behind` on.

        Each comes with the time and step of the turn, and with the number of the next turn.
        """
        turns = self.turns
        for index in range(behind, len(turns)):
            turn = turns[index]
            others: dict[str, None] = {}
            for later in turns[index + 1 :]:
                if later.at_ns != turn.at_ns:
                    break
                if later.process != turn.process:
                    others[later.process] = None
            for other in others:
                yield (turn.at_ns, turn.step), other, index + 1

    def choose(self, ready: deque[Handle], at_ns: int, step: int) -> int:
        """Return the index of the oldest callback of the process that goes first, until it has had its turn."""
        self._note_turn()
        self._goes_first = self._first.get((at_ns, step), self._goes_first)
        place = 0
        if self._goes_first is not None:
            place = oldest_of(self._goes_first, ready)
            if place == len(ready):
                self._goes_first, self.has_missed, place = None, True, 0
        process = process_of(ready[place])
        self._next = None if process is None else Turn(at_ns, step, process)
        return place

    def _note_turn(self) -> None:
        """Record the callback that ran last, if it was a turn."""
        if self._next is not None and self._has_run_program:
            self._turns.append(self._next)
            if self._next.process == self._goes_first:
                self._goes_first = None
        self._next = None
        self._has_run_program = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Observe which code this thread runs."""
        before = sys.getprofile()
        sys.setprofile(self._on_call)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _on_call(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and not self._has_run_program:
            file = frame.f_code.co_filename
            is_program = self._programs.get(file)
            if is_program is None:
                is_program = not (is_of_a_library(file) or is_ours(file))
                self._programs[file] = is_program
            self._has_run_program = is_program
