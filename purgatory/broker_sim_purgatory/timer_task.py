"""A task with a delay.

Mirrors org.apache.kafka.server.util.timer.TimerTask. Deliberate differences:

- A task is its own list entry instead of pointing to one, which saves an object and an indirection
  per request. Kafka needs the second object because its locks let a task be cancelled while it
  moves between buckets; here one lock per timer makes every move one step.
- `cancelled` is False for a task that was never added (Kafka's isCancelled is true for it), and
  a task that is cancelled while it is added is either in the timer or not, never lost between.
"""

from abc import abstractmethod
from typing import final

from broker_sim_purgatory._timer_task_entry import TimerTaskEntry
from broker_sim_purgatory.native import mypyc_attr


def whole_ms(delay_ms: object) -> int:
    """Return an int of a subclass, such as a bool or an IntEnum, as a plain int; TypeError for anything else."""
    if isinstance(delay_ms, int):
        return int(delay_ms)
    raise TypeError(
        f"a delay is a whole number of milliseconds, not the {type(delay_ms).__name__} {delay_ms!r}:"
        " pass an int, such as 1500 for 1.5 seconds"
    )


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTask(TimerTaskEntry):
    """Something to run when `delay_ms` have passed since it was added to a timer.

    Subclass it and write `run`. A task waits in one timer at a time; adding it again moves it.
    `expiration_ms` is when it is due by that timer's clock.

    Thread rule: any thread may add and cancel, but two threads must not add the same task to
    different timers at the same time.
    """

    __slots__ = ("delay_ms",)

    def __init__(self, delay_ms: int) -> None:
        # The entry's fields are set here rather than by super().__init__(): every request makes
        # a task, and the call would be a third of its cost.
        if type(delay_ms) is not int:
            delay_ms = whole_ms(delay_ms)
        self.delay_ms = delay_ms
        self.expiration_ms = -1
        self.cancelled = False
        self.owner = None
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
        while (owner := self.owner) is not None:
            lock = owner.lock
            lock.acquire()
            try:
                # Between the read and the lock it may have moved to another timer: look again.
                if owner is self.owner:
                    self.cancelled = True
                    # As `remove`, whose call would be a quarter of the cost.
                    following = self.next
                    previous = self.prev
                    if following is not None and previous is not None:
                        previous.next = following
                        following.prev = previous
                        self.next = self.prev = None
                        owner.count -= 1
                    return
            finally:
                lock.release()
