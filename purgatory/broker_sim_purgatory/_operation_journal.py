"""Reports the life of operations to the observer: each operation ends exactly once.

Kafka has no counterpart. Only a purgatory with an observer has a journal; without one, completing an
operation costs one comparison more.
"""

import threading
from collections.abc import Callable, Collection

from broker_sim_purgatory.clock import Clock
from broker_sim_purgatory.delayed_operation import DelayedOperation
from broker_sim_purgatory.observer import KEY_PREFIX, OTHER, PurgatoryObserver

_Attempt = tuple[DelayedOperation, str, object, int | None]
"""An attempt of this thread at an operation: (operation, by, key, lateness_ms). A plain tuple with the raw key,
because every try of a watched operation makes one.
"""


class PurgatoryJournal:
    """The operations of one observed purgatory that have not ended. Any thread may call."""

    # The lock is held while the observer is called: otherwise another thread could report the end
    # of an operation between the decision to report it as parked and the report. It is taken
    # after an operation's lock and before the purgatory's, which the observer may need to read
    # figures. cancel_all reports under it, so it is reentrant.

    __slots__ = ("_attempts", "_clock", "_lock", "_observer", "_open")

    def __init__(self, observer: PurgatoryObserver, clock: Clock) -> None:
        self._observer = observer
        self._clock = clock
        self._lock = threading.RLock()
        self._open: dict[int, DelayedOperation] = {}
        self._attempts = threading.local()

    def tried(self, operation: DelayedOperation, keys: Collection[object]) -> None:
        """Start reporting `operation`, unless it is completed already."""
        if operation.next is None:
            operation.expiration_ms = self._clock.now_ms() + operation.delay_ms
        with self._lock:
            # The thread that completes it sets `completed` and then takes this lock to report the end. Either
            # they take it after this and find the operation here, or they took it before. Then
            # `completed` is seen here, and nothing is reported.
            if not operation.completed:
                self._open[operation.operation_id] = operation
                self._observer.tried(operation, keys)

    def parked(self, operation: DelayedOperation, keys: Collection[object]) -> None:
        """Report `operation` as parked, unless it has ended."""
        with self._lock:
            if operation.operation_id in self._open:
                self._observer.parked(operation, keys)

    def attempt(
        self, operation: DelayedOperation, by: str, action: Callable[[], bool], lateness_ms: int | None = None
    ) -> bool:
        """Call `action`; if it completes `operation`, `by` is reported as the reason."""
        stack = self._attempts_of_thread()
        stack.append((operation, by, "", lateness_ms))
        try:
            return action()
        finally:
            stack.pop()

    def attempt_for_key(self, key: object, operation: DelayedOperation) -> bool:
        """`safe_try_complete` because of an event under `key`."""
        stack = self._attempts_of_thread()
        stack.append((operation, KEY_PREFIX, key, None))
        try:
            return operation.safe_try_complete()
        finally:
            stack.pop()

    def expire(self, operation: DelayedOperation) -> None:
        """Expire `operation`, noting how late that is."""
        lateness_ms = self._clock.now_ms() - operation.expiration_ms
        self.attempt(operation, OTHER, operation.expire, lateness_ms)

    def ended(self, operation: DelayedOperation) -> None:
        """Report the completion or expiry of `operation`, called in the thread that won it."""
        with self._lock:
            if self._open.pop(operation.operation_id, None) is None:
                return
            stack = self._attempts_of_thread()
            # Another operation's on_complete may have completed this one: that is no attempt at it.
            if not stack or stack[-1][0] is not operation:
                self._observer.completed(operation, OTHER)
                return
            _, by, key, lateness_ms = stack[-1]
            if lateness_ms is None:
                self._observer.completed(operation, f"{by}{key}")
            else:
                self._observer.expired(operation, lateness_ms)

    def cancelled(self, operation: DelayedOperation) -> None:
        """Report that `operation` was dropped, unless it has ended or is ending."""
        with self._lock:
            if not operation.completed and self._open.pop(operation.operation_id, None) is not None:
                self._observer.cancelled(operation)

    def cancel_all(self) -> None:
        """Report every operation that has not ended as dropped, in the order of their ids."""
        with self._lock:
            for operation in list(self._open.values()):
                self.cancelled(operation)

    def _attempts_of_thread(self) -> list[_Attempt]:
        """Return the attempts under way in this thread, innermost last."""
        try:
            stack: list[_Attempt] = self._attempts.stack
        except AttributeError:
            stack = self._attempts.stack = []
        return stack
