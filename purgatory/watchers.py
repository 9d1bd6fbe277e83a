"""The operations under one key, and a shard of such keys with the lock over them.

Mirrors the inner classes Watchers and WatcherList of Kafka's DelayedOperationPurgatory.
Deliberate difference: a list that is copied to be walked and rebuilt under the shard's lock when
operations have completed, instead of a concurrent linked queue; an operation that was added
after the copy tries itself after it was added, so it misses no event.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from purgatory.delayed_operation import DelayedOperation

OperationT = TypeVar("OperationT", bound=DelayedOperation)


class Watchers(Generic[OperationT]):
    """The operations watched under one key, in the order in which they came."""

    __slots__ = ("operations",)

    def __init__(self) -> None:
        self.operations: list[OperationT] = []

    def try_complete_watched(
        self, attempt: Callable[[OperationT], bool] | None
    ) -> tuple[int, bool]:
        """Try each operation; return how many that completed, and whether any can leave.

        `attempt` stands for `safe_try_complete` if given. No lock of ours is held, because an
        attempt may complete, park or wake anything.
        """
        completed = 0
        any_completed = False
        for operation in self.operations.copy():
            if operation.completed:
                any_completed = True
            elif operation.safe_try_complete() if attempt is None else attempt(operation):
                completed += 1
        return completed, any_completed or completed > 0

    def purge_completed(self) -> int:
        """Drop completed operations; return how many. The shard's lock is held."""
        before = len(self.operations)
        self.operations = [operation for operation in self.operations if not operation.completed]
        return before - len(self.operations)


class WatcherList(Generic[OperationT]):
    """The watch lists of the keys that fall into one shard. Any thread may call."""

    __slots__ = ("_lock", "_watchers_by_key")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers_by_key: dict[object, Watchers[OperationT]] = {}

    def watch(self, key: object, operation: OperationT) -> None:
        """Add `operation` to the list of `key`."""
        lock = self._lock
        lock.acquire()  # see TimerTask.cancel
        try:
            watchers = self._watchers_by_key.get(key)
            if watchers is None:
                watchers = self._watchers_by_key[key] = Watchers()
            watchers.operations.append(operation)
        finally:
            lock.release()

    def check_and_complete(self, key: object, attempt: Callable[[OperationT], bool] | None) -> int:
        """Try the operations under `key`; return how many that completed."""
        watchers = self._watchers_by_key.get(key)  # one atomic read; the walk needs no lock
        if watchers is None:
            return 0
        completed, any_completed = watchers.try_complete_watched(attempt)
        if any_completed:
            with self._lock:
                watchers.purge_completed()
                # Another list may stand under the key by now, if this one was removed meanwhile.
                if not watchers.operations and self._watchers_by_key.get(key) is watchers:
                    del self._watchers_by_key[key]
        return completed

    def cancel(self, key: object) -> list[OperationT]:
        """Drop the list of `key`; return its operations that are not completed."""
        with self._lock:
            watchers = self._watchers_by_key.pop(key, None)
            if watchers is None:
                return []
            watchers.purge_completed()
            return watchers.operations

    def purge_completed(self) -> int:
        """Drop completed operations and empty lists; return how many operations went."""
        with self._lock:
            purged = sum(watchers.purge_completed() for watchers in self._watchers_by_key.values())
            if purged:
                self._watchers_by_key = {
                    key: watchers
                    for key, watchers in self._watchers_by_key.items()
                    if watchers.operations
                }
            return purged

    def counts(self) -> tuple[int, int]:
        """Return the number of keys and of watched entries."""
        with self._lock:
            lists = self._watchers_by_key.values()
            return len(lists), sum(len(watchers.operations) for watchers in lists)

    def watch_lists(self) -> list[tuple[object, tuple[OperationT, ...]]]:
        """Return each key with its operations, those included that are completed."""
        with self._lock:
            lists = self._watchers_by_key.items()
            return [(key, tuple(watchers.operations)) for key, watchers in lists]
