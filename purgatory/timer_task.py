"""A task with a delay, and the entry that links it into a bucket of the timing wheel.

Mirrors org.apache.kafka.server.util.timer.TimerTask and TimerTaskEntry. Deliberate differences:

- A task is its own entry instead of pointing to one, which spares an object and an indirection
  per request. Kafka needs the second object because its locks let a task be cancelled while it
  moves between buckets; here one lock per timer makes every move one step.
- `cancelled` is False for a task that was never added (Kafka's isCancelled is true for it), and
  a task that is cancelled while it is added is either in the timer or not, never lost between.
"""

from abc import abstractmethod
from typing import final

from purgatory.locks import LeafLock
from purgatory.native import mypyc_attr


class TaskCounter:
    """What all buckets of one timer share: how many tasks they hold, and the lock over it all.

    Kafka's taskCounter, its read-write lock and the locks of buckets and entries in one: under
    it a bucket's links, its expiration and `count` change together. It is a leaf: nothing that
    could take another lock runs while it is held.
    """

    __slots__ = ("count", "lock")

    def __init__(self) -> None:
        self.count = 0
        self.lock = LeafLock()


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTaskEntry:
    """A link of a bucket's cyclic list: a task, or the root that marks the list's ends.

    `next` and `prev` are None while it is in no bucket; `counter` belongs to the timer that it
    was last added to. All of it changes only under `counter.lock`.
    """

    __slots__ = ("cancelled", "counter", "expiration_ms", "next", "prev")

    def __init__(self) -> None:
        self.expiration_ms = -1
        self.cancelled = False
        self.counter: TaskCounter | None = None
        self.next: TimerTaskEntry | None = None
        self.prev: TimerTaskEntry | None = None

    def remove(self) -> None:
        """Leave the bucket, if in one. The caller holds `counter.lock`."""
        following = self.next
        previous = self.prev
        if following is not None and previous is not None and self.counter is not None:
            previous.next = following
            following.prev = previous
            self.next = self.prev = None
            self.counter.count -= 1


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTask(TimerTaskEntry):
    """Something to run when `delay_ms` have passed since it was added to a timer.

    Subclass it and write `run`. Any thread may cancel. A task waits in one timer at a time;
    adding it again moves it. `expiration_ms` is when it is due by that timer's clock.
    """

    __slots__ = ("delay_ms",)

    def __init__(self, delay_ms: int) -> None:
        # The entry's fields are set here rather than by super().__init__(): every request makes
        # a task, and the call would be a third of its cost.
        self.delay_ms = delay_ms
        self.expiration_ms = -1
        self.cancelled = False
        self.counter = None
        self.next = None
        self.prev = None

    @abstractmethod
    def run(self) -> None:
        """Do the work; called once per expiry on the timer's executor."""
        raise NotImplementedError

    @final
    def cancel(self) -> None:
        """Take the task out of its timer at once, in O(1).

        Nothing happens if it was never added. A task that was already handed to the executor
        still runs.
        """
        while (counter := self.counter) is not None:
            lock = counter.lock
            lock.acquire()  # half the price of `with`, here and in the other steps of a request
            try:
                # Between the read and the lock it may have moved to another timer: look again.
                if counter is self.counter:
                    self.cancelled = True
                    self.remove()
                    return
            finally:
                lock.release()
