"""Virtual time: the scheduler that runs a cluster step by step, always in the same order."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, Any

from purgatory import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from purgatory import DelayedOperationPurgatory, SystemTimer

__all__ = ["VirtualScheduler"]


class _Event:
    """A callback at a time; events of the same time run in the order in which they were made."""

    __slots__ = ("args", "callback", "cancelled", "due_ms", "number")

    def __init__(
        self, due_ms: int, number: int, callback: Callable[..., object], args: tuple[Any, ...]
    ) -> None:
        self.due_ms = due_ms
        self.number = number
        self.callback = callback
        self.args = args
        self.cancelled = False

    def __lt__(self, other: _Event) -> bool:
        return (self.due_ms, self.number) < (other.due_ms, other.number)

    def cancel(self) -> None:
        """Take the callback back."""
        self.cancelled = True


class VirtualScheduler:
    """A `Scheduler` whose time moves only in `step`. Single-threaded.

    Purgatories are part of the order: those whose timers are due are advanced before the events of
    that time, in the order in which they were added.
    """

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self._clock = VirtualClock() if clock is None else clock
        self._events: list[_Event] = []
        self._numbers = count()
        self._purgatories: list[tuple[SystemTimer, DelayedOperationPurgatory[Any]]] = []

    @property
    def clock(self) -> VirtualClock:
        """The clock that `step` moves."""
        return self._clock

    def add_purgatory(self, timer: SystemTimer, purgatory: DelayedOperationPurgatory[Any]) -> None:
        """Advance the purgatory whenever a bucket of its timer is due."""
        self._purgatories.append((timer, purgatory))

    def remove_purgatory(self, purgatory: DelayedOperationPurgatory[Any]) -> None:
        """Look after the purgatory no more: its broker is dead."""
        self._purgatories = [known for known in self._purgatories if known[1] is not purgatory]

    def call_soon(self, callback: Callable[..., object], *args: Any) -> _Event:
        """Run ``callback(*args)`` after what is already due."""
        return self.call_later(0, callback, *args)

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> _Event:
        """Do as `call_soon`: in virtual time there is one thread."""
        return self.call_later(0, callback, *args)

    def call_later(self, delay_ms: int, callback: Callable[..., object], *args: Any) -> _Event:
        """Run ``callback(*args)`` in ``delay_ms`` virtual milliseconds."""
        event = _Event(self._clock.now_ms() + delay_ms, next(self._numbers), callback, args)
        heapq.heappush(self._events, event)
        return event

    def report_error(self, message: str, error: Exception) -> None:
        """Raise the error: a simulated run must not go on with it."""
        error.add_note(message)
        raise error

    def next_due_ms(self) -> int | None:
        """Return when the next event or expiration is due; None if nothing is left to happen."""
        while self._events and self._events[0].cancelled:
            heapq.heappop(self._events)
        due_ms = self._events[0].due_ms if self._events else None
        for timer, _ in self._purgatories:
            expiration_ms = timer.next_expiration_ms()
            if expiration_ms is not None and (due_ms is None or expiration_ms < due_ms):
                due_ms = expiration_ms
        return due_ms

    def step(self) -> bool:
        """Move to what is due next and run one event, or expire; False if nothing is left."""
        due_ms = self.next_due_ms()
        if due_ms is None:
            return False
        if due_ms > self._clock.now_ms():
            self._clock.advance_to(due_ms)
        if not self._advance_purgatories():
            event = heapq.heappop(self._events)
            event.callback(*event.args)
        return True

    def _advance_purgatories(self) -> bool:
        now_ms = self._clock.now_ms()
        advanced = False
        for timer, purgatory in self._purgatories:
            expiration_ms = timer.next_expiration_ms()
            if expiration_ms is not None and expiration_ms <= now_ms:
                purgatory.advance_clock(0)
                advanced = True
        return advanced

    def advance_to(self, time_ms: int) -> None:
        """Run everything that is due until ``time_ms``, and end there."""
        while (due_ms := self.next_due_ms()) is not None and due_ms <= time_ms:
            self.step()
        self._clock.advance_to(max(time_ms, self._clock.now_ms()))
