"""The links of a bucket's list, and what all tasks of one timer share.

Mirrors org.apache.kafka.server.util.timer.TimerTaskEntry. Deliberate difference: Kafka has a lock
per entry, per bucket and per shard of watch lists, and a read-write lock over the timer. Here one
lock per timer covers all of it; the lock story stands in delayed_operation_purgatory.py.
"""

import threading
from typing import TYPE_CHECKING, Protocol

from broker_sim_purgatory.native import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory.delayed_operation import DelayedOperation


class OperationJournal(Protocol):
    """The journal of an observed purgatory; see broker_sim_purgatory._operation_journal."""

    def ended(self, operation: "DelayedOperation", /) -> None:
        """Report that `operation` has been completed and its on_complete has run."""

    def expire(self, operation: "DelayedOperation", /) -> None:
        """Complete `operation` because its delay is over, and report the expiry."""


class TaskOwner:
    """State that one timer, its purgatory and their tasks share: the lock, and the fields that it guards.

    Kafka's taskCounter is `count`. The lock is a leaf: no other lock is taken while it is held.
    """

    __slots__ = ("closed", "count", "journal", "lock", "on_purge_due", "purge_asked", "purge_below")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        """Tasks in the wheel."""
        self.closed = False
        """Whether the purgatory is shut down; then nothing is added or watched."""
        self.purge_below = 0
        """A purge is due once `count` is below this number."""
        self.purge_asked = False
        self.on_purge_due: Callable[[], object] | None = None
        """Called without the lock when a purge is due; set by timers that are advanced only when something is due."""
        self.journal: OperationJournal | None = None

    def adopt(self, task: "TimerTaskEntry") -> None:
        """Take `task` over from its present owner; it leaves the timer in which it waits."""
        while (owner := task.owner) is not self:
            assert owner is not None
            lock = owner.lock
            lock.acquire()  # takes half the time of `with`, here and on all paths of a request
            try:
                if owner is task.owner:
                    task.remove()
                    task.owner = self
            finally:
                lock.release()

    def asks_for_purge(self) -> bool:
        """Return whether `on_purge_due` is to be called: once per purge. The lock is held."""
        if self.purge_asked or self.on_purge_due is None or self.count >= self.purge_below:
            return False
        self.purge_asked = True
        return True


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTaskEntry:
    """A link of a bucket's cyclic list: a task, or the root that marks the list's ends.

    `next` and `prev` are None while it is in no bucket. `owner` belongs to the timer that it was
    last added to, None before. All of it changes only under `owner.lock`.
    """

    __slots__ = ("cancelled", "expiration_ms", "next", "owner", "prev")

    def __init__(self) -> None:
        self.expiration_ms = -1
        self.cancelled = False
        self.owner: TaskOwner | None = None
        self.next: TimerTaskEntry | None = None
        self.prev: TimerTaskEntry | None = None

    def remove(self) -> None:
        """Leave the bucket, if in one. The caller holds `owner.lock`."""
        following = self.next
        previous = self.prev
        if following is not None and previous is not None and self.owner is not None:
            previous.next = following
            following.prev = previous
            self.next = self.prev = None
            self.owner.count -= 1
