"""A priority queue with the order of `java.util.PriorityQueue`, also among equal elements.

`heapq` sinks elements differently, so it returns equal elements in another order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """A binary heap. `priority(element)` must not change while the element is in it."""

    __slots__ = ("_heap", "_priority")

    def __init__(self, priority: Callable[[T], float]) -> None:
        self._priority = priority
        self._heap: list[T] = []

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, element: T) -> None:
        """Add an element, which rises above all greater parents."""
        heap, priority = self._heap, self._priority
        value = priority(element)
        place = len(heap)
        heap.append(element)
        while place > 0:
            parent = (place - 1) >> 1
            if value >= priority(heap[parent]):
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = element

    def poll(self) -> T | None:
        """Remove and return the least element, None if the queue is empty.

        The last element takes its place and sinks below lesser children, to the left if both are equal.
        """
        heap = self._heap
        if not heap:
            return None
        least, last = heap[0], heap.pop()
        if heap:
            self._sink(last)
        return least

    def _sink(self, element: T) -> None:
        heap, priority = self._heap, self._priority
        value, size = priority(element), len(heap)
        place = 0
        while (child := 2 * place + 1) < size:
            right = child + 1
            if right < size and priority(heap[child]) > priority(heap[right]):
                child = right
            if value <= priority(heap[child]):
                break
            heap[place] = heap[child]
            place = child
        heap[place] = element
