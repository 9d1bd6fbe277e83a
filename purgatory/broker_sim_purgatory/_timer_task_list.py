"""A bucket of the timing wheel: a cyclic doubly linked list of tasks with one expiration.

Mirrors org.apache.kafka.server.util.timer.TimerTaskList. Deliberate differences: the lock is
the timer's, shared through the TaskOwner, and is held by the caller; a bucket knows its level and
its index in the wheel, so that the place of a parked operation can be displayed.
"""

from collections.abc import Iterator
from typing import cast

from broker_sim_purgatory._timer_task_entry import TaskOwner, TimerTaskEntry
from broker_sim_purgatory.timer_task import TimerTask

NOT_ENQUEUED = -1
"""The expiration of a bucket that is not in the delay queue."""


class TimerTaskList:
    """The tasks of one bucket, in the order in which they were added.

    Thread rule: the caller holds `owner.lock`.
    """

    __slots__ = ("_owner", "_root", "expiration_ms", "index", "level")

    def __init__(self, owner: TaskOwner, level: int = 1, index: int = 0) -> None:
        self.level = level
        self.index = index
        self.expiration_ms = NOT_ENQUEUED
        self._owner = owner
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
        """Return whether the bucket has no tasks; cancelled tasks leave at once."""
        return self._root.next is self._root

    def count(self) -> int:
        """Return the number of tasks, counted one by one: adding and removing keep no counter."""
        root = self._root
        entry = root.next
        count = 0
        while entry is not root:
            assert entry is not None
            count += 1
            entry = entry.next
        return count

    def add(self, entry: TimerTaskEntry) -> None:
        """Append `entry`, which first leaves its present bucket of this timer."""
        owner = self._owner
        if entry.next is not None:
            entry.remove()
        root = self._root
        tail = root.prev
        assert tail is not None
        entry.owner = owner
        entry.prev = tail
        entry.next = root
        tail.next = entry
        root.prev = entry
        owner.count += 1

    def take(self, limit: int) -> list[TimerTask]:
        """Remove and return up to `limit` tasks from the front."""
        tasks: list[TimerTask] = []
        for task in self:
            if len(tasks) == limit:
                break
            task.remove()
            tasks.append(task)
        return tasks

    def flush(self) -> list[TimerTask]:
        """Empty the bucket and return its tasks; its next use enqueues it again."""
        tasks = list(self)
        for task in tasks:
            task.next = task.prev = None
        root = self._root
        root.next = root.prev = root
        self._owner.count -= len(tasks)
        self.expiration_ms = NOT_ENQUEUED
        return tasks
