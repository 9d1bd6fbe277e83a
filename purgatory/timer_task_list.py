"""A bucket of the timing wheel: a cyclic doubly linked list of tasks with one expiration.

Mirrors org.apache.kafka.server.util.timer.TimerTaskList. Deliberate differences: the lock is
the timer's, shared through the TaskCounter, and is held by the caller; a bucket knows its level
and its index in the wheel, so that parked operations can be shown where they wait.
"""

from collections.abc import Iterator
from typing import cast

from purgatory.timer_task import TaskCounter, TimerTask, TimerTaskEntry

NOT_ENQUEUED = -1
"""The expiration of a bucket that is not in the delay queue."""


class TimerTaskList:
    """The tasks of one bucket, in the order in which they were added.

    Thread rule: whoever calls holds `counter.lock`.
    """

    __slots__ = ("_counter", "_root", "expiration_ms", "index", "level")

    def __init__(self, counter: TaskCounter, level: int = 1, index: int = 0) -> None:
        self.level = level
        self.index = index
        self.expiration_ms = NOT_ENQUEUED
        self._counter = counter
        # root.next is the head and root.prev the tail, so linking needs no case for the ends.
        root = TimerTaskEntry()
        root.next = root.prev = root
        self._root = root

    def __iter__(self) -> Iterator[TimerTask]:
        root = self._root
        entry = root.next
        while entry is not None and entry is not root:
            following = entry.next
            yield cast("TimerTask", entry)
            entry = following

    def is_empty(self) -> bool:
        """Return whether no task is left; a cancelled task has left already."""
        return self._root.next is self._root

    def set_expiration(self, expiration_ms: int) -> bool:
        """Set when the bucket is due, in ms; True if that changed, so it must be enqueued."""
        if self.expiration_ms == expiration_ms:
            return False
        self.expiration_ms = expiration_ms
        return True

    def add(self, entry: TimerTaskEntry) -> None:
        """Append `entry`; it leaves the bucket it was in, of the same timer, first."""
        counter = self._counter
        if entry.next is not None:
            entry.remove()
        root = self._root
        tail = root.prev
        assert tail is not None
        entry.counter = counter
        entry.prev = tail
        entry.next = root
        tail.next = entry
        root.prev = entry
        counter.count += 1

    def flush(self) -> list[TimerTask]:
        """Empty the bucket and return its tasks; its next use enqueues it again."""
        tasks = list(self)
        for task in tasks:
            task.next = task.prev = None
        root = self._root
        root.next = root.prev = root
        self._counter.count -= len(tasks)
        self.expiration_ms = NOT_ENQUEUED
        return tasks
