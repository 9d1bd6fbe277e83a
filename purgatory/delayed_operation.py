"""An operation that waits until it can be completed, at most `delay_ms`.

Mirrors org.apache.kafka.server.purgatory.DelayedOperation. Deliberate differences: an operation
can belong to a journal, which reports its end to a purgatory's observer; it carries an id and
its watch keys, so that it can be shown while it is parked.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, final

from purgatory.locks import ONE_STEP, LeafLock, ReentrantLock
from purgatory.native import mypyc_attr
from purgatory.timer_task import TimerTask


class OperationLock(Protocol):
    """What makes the attempts at an operation exclusive; threading's locks fit as they are."""

    def acquire(self) -> object:
        """Wait until nobody else holds it."""

    def release(self) -> None:
        """Let the next one have it."""


class OperationJournal(Protocol):
    """Where an observed operation reports; see purgatory.operation_journal."""

    def ended(self, operation: "DelayedOperation", /) -> None:
        """Report that `operation` has been completed and its on_complete has run."""

    def expire(self, operation: "DelayedOperation", /) -> None:
        """Force `operation` to complete because its time is over, and report that."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(TimerTask):
    """Subclass it and write `try_complete`, `on_complete` and `on_expiration`.

    `on_complete` runs exactly once, in the thread of whoever wins: a `try_complete` that found
    its condition met and called `force_complete`, or the expiry.

    Any thread may call anything. `lock` makes attempts exclusive; give several operations the
    same reentrant lock when their conditions are guarded by it, as Kafka's group joins do. An
    operation with `one_thread=True` has no lock: one thread parks it, announces its events and
    expires it. Then nothing can happen between two tries, so it is not tried a second time.
    """

    __slots__ = (
        "_completion",
        "completed",
        "journal",
        "lock",
        "one_thread",
        "operation_id",
        "own_lock",
        "watch_keys",
    )

    def __init__(
        self, delay_ms: int, lock: OperationLock | None = None, *, one_thread: bool = False
    ) -> None:
        # As in TimerTask: spares a call per request.
        self.delay_ms = delay_ms
        self.expiration_ms = -1
        self.cancelled = False
        self.counter = None
        self.next = None
        self.prev = None
        self.one_thread = one_thread
        self.lock: OperationLock | None = lock
        # The usual one once more in the native build, which calls it there without a look-up.
        self.own_lock: ReentrantLock | None = None
        if lock is None and not one_thread:
            self.lock = usual = ReentrantLock()
            if ONE_STEP:
                self.own_lock = usual
        self.completed = False
        self.operation_id = 0
        self.watch_keys: Sequence[object] = ()
        self.journal: OperationJournal | None = None
        # Taken once and never given back: whoever gets it completes the operation.
        self._completion: LeafLock | None = None if ONE_STEP else LeafLock()

    @property
    def created_ms(self) -> int:
        """When it was parked, by the purgatory's clock; observed: when it was first tried."""
        return self.expiration_ms - self.delay_ms

    @abstractmethod
    def try_complete(self) -> bool:
        """If the condition is met, return `force_complete()`, else False. `lock` is held."""
        raise NotImplementedError

    @abstractmethod
    def on_complete(self) -> None:
        """Do what the operation waited for; called exactly once."""
        raise NotImplementedError

    @abstractmethod
    def on_expiration(self) -> None:
        """Follow up on `on_complete` when it was the expiry that completed the operation."""
        raise NotImplementedError

    def is_completed(self) -> bool:
        """Return whether somebody has won the right to complete it."""
        return self.completed

    def force_complete(self) -> bool:
        """Complete it unless it is completed; True for the one caller that did.

        Leaves the timer, then runs `on_complete`, whose exceptions pass through.
        """
        completion = self._completion
        if completion is not None and not completion.acquire(False):
            return False
        if self.completed:
            return False
        self.completed = True
        TimerTask.cancel(self)
        journal = self.journal
        if journal is None:
            self.on_complete()
        else:
            try:
                self.on_complete()
            finally:
                journal.ended(self)
        return True

    @final
    def safe_try_complete(self) -> bool:
        """`try_complete` under the operation's lock."""
        own = self.own_lock
        if own is None:
            lock = self.lock
            if lock is None:
                return self.try_complete()
            lock.acquire()  # see TimerTask.cancel
            try:
                return self.try_complete()
            finally:
                lock.release()
        own.acquire()
        try:
            return self.try_complete()
        finally:
            own.leave()

    @final
    def safe_try_complete_or_else(self, action: Callable[[], object]) -> bool:
        """Under the operation's lock: try; if that fails, call `action` and try once more.

        True iff one of the tries completed the operation.
        """
        lock = self.lock
        if lock is None:
            if self.try_complete():
                return True
            action()
            return False
        lock.acquire()
        try:
            if self.try_complete():
                return True
            action()
            return self.try_complete()
        finally:
            lock.release()

    def run(self) -> None:
        """Expire: complete it if nobody has, then `on_expiration`. The timer calls this."""
        journal = self.journal
        if journal is None:
            self.expire()
        else:
            journal.expire(self)

    def expire(self) -> bool:
        """`force_complete`, and `on_expiration` if that won; returns whether it did."""
        if self.force_complete():
            self.on_expiration()
            return True
        return False
