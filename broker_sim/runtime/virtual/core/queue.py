"""The callbacks of a virtual loop: handles, the queue of ready callbacks, and the timers."""

from __future__ import annotations

import asyncio
import heapq
from asyncio import format_helpers
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from broker_sim.runtime.virtual.core.clock import BusyWait

if TYPE_CHECKING:
    from asyncio import Handle, TimerHandle
    from collections import deque
    from collections.abc import Callable, Iterable
    from contextvars import Context

    from broker_sim.runtime.virtual.core.clock import LoopClock

MIN_CANCELLED_TO_CLEAN: Final = 100
"""Number of cancelled timers in the heap from which it is cleaned."""


class VirtualHandle(asyncio.Handle):
    """A ready callback: asyncio's handle, constructed faster, as every callback needs one.

    asyncio's constructor does more in debug mode only, and is called then.
    """

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.BaseEventLoop,
        context: Context | None,
    ) -> None:
        if loop._debug:  # type: ignore[attr-defined]
            super().__init__(callback, args, loop, context)
            return
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class VirtualTimerHandle(asyncio.TimerHandle):
    """A callback that is due at a certain time; constructed faster in the same way."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.BaseEventLoop,
        context: Context | None,
    ) -> None:
        if loop._debug:  # type: ignore[attr-defined]
            super().__init__(when, callback, args, loop, context)
            return
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = False

    def cancel(self) -> None:
        """Cancel the callback."""
        if self._cancelled:
            return
        loop: Any = self._loop
        if loop._debug:
            super().cancel()
            return
        loop._timer_handle_cancelled(self)
        self._cancelled = True
        self._callback = self._args = None  # type: ignore[assignment]


def failure_of(handle: asyncio.Handle, error: BaseException) -> dict[str, Any]:
    """Return the context that asyncio passes to exception handlers for a failed callback."""
    what = format_helpers._format_callback_source(handle._callback, handle._args)  # type: ignore[attr-defined]
    return {"message": f"Exception in callback {what}", "exception": error, "handle": handle}


class TimerQueue:
    """Handles with the integer times at which they are due; equal times keep the order of creation.

    asyncio's own heap compares floats and leaves the order of equal ones open.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, TimerHandle]] = []
        self._pushed = 0
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def push(self, due_ns: int, handle: TimerHandle) -> None:
        """Add a handle."""
        self._pushed += 1
        heapq.heappush(self._heap, (due_ns, self._pushed, handle))
        handle._scheduled = True  # type: ignore[attr-defined]

    def next_due_ns(self) -> int | None:
        """Return when the first handle that is not cancelled is due; None without one."""
        heap = self._heap
        while heap:
            due_ns, _, handle = heap[0]
            if not handle._cancelled:
                return due_ns
            heapq.heappop(heap)
            self._cancelled -= 1
        return None

    def pop_due(self, now_ns: int, ready: deque[Handle]) -> None:
        """Move the handles that are due by `now_ns` to `ready`, in order."""
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            handle = heapq.heappop(heap)[2]
            if handle._cancelled:
                self._cancelled -= 1
            else:
                handle._scheduled = False  # type: ignore[attr-defined]
                ready.append(handle)

    def on_cancelled(self, handle: TimerHandle) -> None:
        """Count a handle that is being cancelled; once most are cancelled, they are removed."""
        if not handle._scheduled:  # type: ignore[attr-defined]
            return
        handle._scheduled = False  # type: ignore[attr-defined]
        self._cancelled += 1
        if self._cancelled > MIN_CANCELLED_TO_CLEAN and 2 * self._cancelled > len(self._heap):
            # The one being cancelled is not marked as such yet.
            self._heap = [entry for entry in self._heap if not (entry[2]._cancelled or entry[2] is handle)]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def take_out(self, belongs: Callable[[Handle], bool]) -> list[tuple[int, Handle]]:
        """Remove the handles for which `belongs` is true; return them with their times, in order."""
        rest: list[tuple[int, int, TimerHandle]] = []
        entries: list[tuple[int, int, TimerHandle]] = []
        for entry in self._heap:
            if entry[2]._cancelled:
                continue
            (entries if belongs(entry[2]) else rest).append(entry)
        heapq.heapify(rest)
        self._heap, self._cancelled = rest, 0
        for _, _, handle in entries:
            handle._scheduled = False  # type: ignore[attr-defined]
        return [(due_ns, handle) for due_ns, _, handle in sorted(entries, key=lambda each: each[:2])]

    def clear(self) -> None:
        """Drop all; a closed loop runs nothing."""
        self._heap.clear()
        self._cancelled = 0


class CallbackQueue:
    """The ready callbacks and the timers of one loop; it moves the clock to the timers."""

    def __init__(self, loop: asyncio.BaseEventLoop, clock: LoopClock) -> None:
        self.ready: deque[Handle] = loop._ready  # type: ignore[attr-defined]
        self.timers = TimerQueue()
        self.busy_wait = BusyWait(clock)
        self._loop = loop
        self._clock = clock

    def next_due_ns(self) -> int | None:
        """Return the time of the next callback in ns; None if there is none."""
        return self._clock.now_ns if self.ready else self.timers.next_due_ns()

    def move_to_ns(self, now_ns: int) -> None:
        """Move the clock, and make the timers ready that are due by then."""
        busy_wait = self.busy_wait
        if now_ns != busy_wait.nudged_ns:
            busy_wait.progress_ns = now_ns
        self._clock.move_to_ns(now_ns)
        self.timers.pop_due(now_ns, self.ready)

    def take_out(self, belongs: Callable[[Handle], bool]) -> list[tuple[int, Handle]]:
        """Remove the callbacks for which `belongs` is true.

        Returns them with the times at which they are due, in the order in which they would run.
        """
        now_ns = self._clock.now_ns
        entries = []
        for index, handle in enumerate(self.ready):
            if not handle._cancelled and belongs(handle):
                entries.append((now_ns, handle))
                # The current round has counted the ready ones already.
                place_holder = VirtualHandle(_nothing, (), self._loop, None)
                place_holder.cancel()
                self.ready[index] = place_holder
        return entries + self.timers.take_out(belongs)

    def take_back(self, entries: Iterable[tuple[int, Handle]]) -> None:
        """Put callbacks back; those already due go behind all ready ones."""
        for due_ns, handle in sorted(entries, key=lambda entry: entry[0]):
            if handle._cancelled:
                continue
            if due_ns > self._clock.now_ns:
                assert isinstance(handle, asyncio.TimerHandle)
                self.timers.push(due_ns, handle)
            else:
                self.ready.append(handle)


def _nothing() -> None:
    """Replace a removed callback."""
