"""An operation that waits until it can be completed, at most `delay_ms`.

Mirrors org.apache.kafka.server.purgatory.DelayedOperation. Deliberate differences: the operation
leaves the timer in the step that completes it, under the purgatory's lock; the lock is optional; an operation has an
id, so that it can be displayed while it is parked.
"""

from _thread import LockType, RLock
from abc import abstractmethod
from collections.abc import Callable
from typing import Final, Protocol, cast, final

from broker_sim_purgatory._timer_task_entry import TaskOwner
from broker_sim_purgatory.native import mypyc_attr
from broker_sim_purgatory.timer_task import TimerTask, whole_ms


class OperationLock(Protocol):
    """A reentrant lock such as threading.RLock: only one thread at a time tries or completes the operation."""

    def acquire(self) -> object:
        """Take the lock, waiting while another thread holds it."""

    def release(self) -> None:
        """Release the lock."""


UNPARKED: Final = TaskOwner()
"""The owner of operations that have never been in a timer or purgatory."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(TimerTask):
    """Subclass it and write `try_complete`, `on_complete` and `on_expiration`.

    `on_complete` runs exactly once, in the thread that wins: either a `try_complete` whose condition is met and that
    calls `force_complete`, or the expiry.

    Any thread may call anything. `lock` is held while the operation is tried and while `on_complete`
    runs, so these never overlap; by default each operation has a reentrant lock of its own. Operations whose
    conditions are guarded by one reentrant lock should share it, as Kafka's group joins do; a lock that is not
    reentrant raises ValueError. An operation with `one_thread=True` has no lock: one thread parks it, announces its
    events and expires it. Nothing can then happen between two tries, so the operation is tried only once.
    """

    __slots__ = ("completed", "lock", "one_thread", "operation_id", "watch_number")

    def __init__(self, delay_ms: int, lock: OperationLock | None = None, *, one_thread: bool = False) -> None:
        # As in TimerTask: saves a call per request.
        if type(delay_ms) is not int:
            delay_ms = whole_ms(delay_ms)
        self.delay_ms = delay_ms
        self.expiration_ms = -1
        self.cancelled = False
        self.owner = UNPARKED
        self.next = None
        self.prev = None
        self.completed = False
        if lock is None:
            self.lock: OperationLock | None = None if one_thread else RLock()
        elif type(lock) is LockType:
            raise ValueError("lock is not reentrant: pass a threading.RLock, because on_complete runs while it is held")
        else:
            self.lock = lock
        self.one_thread = one_thread
        self.operation_id = 0
        self.watch_number = 0

    @property
    def created_ms(self) -> int:
        """When the operation was parked, by the purgatory's clock; with an observer, when it was first tried."""
        return self.expiration_ms - self.delay_ms

    @abstractmethod
    def try_complete(self) -> bool:
        """If the condition is met, return `force_complete()`, else False. `lock` is held."""
        raise NotImplementedError

    @abstractmethod
    def on_complete(self) -> None:
        """Act on the completion, for example send the response; called exactly once."""
        raise NotImplementedError

    @abstractmethod
    def on_expiration(self) -> None:
        """Follow up on an expiry; called after `on_complete`."""
        raise NotImplementedError

    def is_completed(self) -> bool:
        """Return whether a thread has won the right to complete it."""
        return self.completed

    def force_complete(self) -> bool:
        """Complete the operation; return True only to the one caller that completed it.

        Waits for the operation's lock, so the caller must hold no lock that `try_complete` takes. Leaves the timer,
        then runs `on_complete` under the operation's lock; its exceptions pass through.
        """
        if self.completed:
            return False
        lock = self.lock
        if lock is not None:
            lock.acquire()
        try:
            asks_for_purge = False
            has_moved = True
            while has_moved:
                owner = cast("TaskOwner", self.owner)  # an operation always has one
                owner.lock.acquire()
                try:
                    # Between the read and the lock it may have been parked: look again.
                    has_moved = owner is not self.owner
                    if not has_moved:
                        if self.completed:
                            return False
                        self.completed = True
                        self.cancelled = True
                        self.remove()
                        asks_for_purge = owner.count < owner.purge_below and owner.asks_for_purge()
                finally:
                    owner.lock.release()
            if asks_for_purge and owner.on_purge_due is not None:
                owner.on_purge_due()
            if owner.journal is None:
                self.on_complete()
            else:
                try:
                    self.on_complete()
                finally:
                    owner.journal.ended(self)
        finally:
            if lock is not None:
                lock.release()
        return True

    @final
    def safe_try_complete(self) -> bool:
        """`try_complete` under the operation's lock."""
        lock = self.lock
        if lock is None:
            return self.try_complete()
        lock.acquire()
        try:
            return self.try_complete()
        finally:
            lock.release()

    @final
    def safe_try_complete_or_else(self, action: Callable[[], object]) -> bool:
        """Under the operation's lock: try; if that fails, call `action` and try once more.

        True iff one of the tries completed the operation. With `one_thread` it is tried once.
        """
        lock = self.lock
        if lock is None:
            return self._try_act_try(action)
        lock.acquire()
        try:
            return self._try_act_try(action)
        finally:
            lock.release()

    def run(self) -> None:
        """Expire the operation, unless it is completed already. The timer calls this."""
        owner = self.owner
        if owner is None or owner.journal is None:
            self.expire()
        else:
            owner.journal.expire(self)

    def expire(self) -> bool:
        """Call `force_complete` and, if that completed the operation, `on_expiration`; return whether it did."""
        if self.force_complete():
            self.on_expiration()
            return True
        return False

    def _try_act_try(self, action: Callable[[], object]) -> bool:
        if self.try_complete():
            return True
        action()
        return not self.one_thread and self.try_complete()
