"""The timers of a virtual loop: a heap by due time, ties in the order in which they were made."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import Handle, TimerHandle
    from collections import deque
    from collections.abc import Callable

MIN_CANCELLED_TO_CLEAN = 100


class TimerQueue:
    """Handles with the integer time at which each is due.

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
        """Return when the first handle is due that is not cancelled; None if there is none."""
        heap = self._heap
        while heap:
            due_ns, _, handle = heap[0]
            if not handle._cancelled:
                return due_ns
            heapq.heappop(heap)
            self._cancelled -= 1
        return None

    def pop_due(self, now_ns: int, ready: deque[Handle]) -> None:
        """Move to `ready` what is due by `now_ns`, in order."""
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            handle = heapq.heappop(heap)[2]
            if handle._cancelled:
                self._cancelled -= 1
            else:
                handle._scheduled = False  # type: ignore[attr-defined]
                ready.append(handle)

    def on_cancelled(self, handle: TimerHandle) -> None:
        """Count a handle that is being cancelled; once most are, they are thrown out."""
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
        """Remove the handles that belong to somebody; return them with their times, in order."""
        kept: list[tuple[int, int, TimerHandle]] = []
        taken: list[tuple[int, int, TimerHandle]] = []
        for entry in self._heap:
            if entry[2]._cancelled:
                continue
            (taken if belongs(entry[2]) else kept).append(entry)
        heapq.heapify(kept)
        self._heap, self._cancelled = kept, 0
        for _, _, handle in taken:
            handle._scheduled = False  # type: ignore[attr-defined]
        return [(due_ns, handle) for due_ns, _, handle in sorted(taken, key=lambda each: each[:2])]

    def clear(self) -> None:
        """Drop all; a closed loop runs nothing."""
        self._heap.clear()
        self._cancelled = 0
