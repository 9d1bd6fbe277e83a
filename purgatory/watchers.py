"""The watch lists of a purgatory: which operations wait for events on which key.

Mirrors the inner classes Watchers and WatcherList of Kafka's DelayedOperationPurgatory. Deliberate
differences: one lock and one dict for all keys instead of 512 of each, because an interpreter runs
one thread at a time and a new key then costs the memory's caches least; a key's list only grows,
and is replaced when operations have completed, so that it can be walked without a lock. An
operation that comes during the walk tries itself after it has come, so it misses no event.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from purgatory.delayed_operation import DelayedOperation
from purgatory.locks import LeafLock

OperationT = TypeVar("OperationT", bound=DelayedOperation)

PURGED_AT_ONCE = 1_000
"""Keys that one step of a purge looks through; between the steps others get the lock."""


class WatcherList(Generic[OperationT]):
    """The operations under each key, in the order in which they came. Any thread may call."""

    # Under the lock only keys are hashed and compared.
    __slots__ = ("_entries", "_lock", "_operations_by_key", "total")

    def __init__(self) -> None:
        self.total = 0
        """Operations that were ever watched."""
        self._entries = 0
        self._lock = LeafLock()
        self._operations_by_key: dict[object, list[OperationT]] = {}

    def watch(self, operation: OperationT, keys: Sequence[object]) -> None:
        """Add `operation` to the list of each key, as long as it is not completed."""
        lists = self._operations_by_key
        lock = self._lock
        uncounted = 1
        for key in keys:
            if operation.completed:
                break
            lock.acquire()  # see TimerTask.cancel
            try:
                operations = lists.get(key)
                if operations is None:
                    lists[key] = [operation]
                else:
                    operations.append(operation)
                self._entries += 1
                self.total += uncounted
            finally:
                lock.release()
            uncounted = 0

    def check_and_complete(self, key: object, attempt: Callable[[OperationT], bool] | None) -> int:
        """Try the operations under `key`; return how many that completed.

        `attempt` stands for `safe_try_complete` if given. The lock is not held meanwhile, because
        an attempt may complete, park or wake anything.
        """
        operations = self._operations_by_key.get(key)  # one atomic read
        if operations is None:
            return 0
        completed = 0
        any_completed = False
        for index in range(len(operations)):  # those that come meanwhile are not walked
            operation = operations[index]
            if operation.completed:
                any_completed = True
            elif (
                DelayedOperation.safe_try_complete(operation)
                if attempt is None
                else attempt(operation)
            ):
                completed += 1
        if completed or any_completed:
            lock = self._lock
            lock.acquire()  # see TimerTask.cancel
            try:
                self._drop_completed(key)
            finally:
                lock.release()
        return completed

    def cancel(self, key: object) -> list[OperationT]:
        """Drop the list of `key`; return its operations that are not completed."""
        with self._lock:
            operations = self._operations_by_key.pop(key, None)
            if operations is None:
                return []
            self._entries -= len(operations)
            return [operation for operation in operations if not operation.completed]

    def purge_completed(self) -> int:
        """Drop completed operations and empty lists; return how many entries went."""
        purged = 0
        with self._lock:
            keys = list(self._operations_by_key)
        for start in range(0, len(keys), PURGED_AT_ONCE):
            with self._lock:
                before = self._entries
                for key in keys[start : start + PURGED_AT_ONCE]:
                    self._drop_completed(key)
                purged += before - self._entries
        return purged

    def counts(self) -> tuple[int, int]:
        """Return the number of keys and of watched entries."""
        with self._lock:
            return len(self._operations_by_key), self._entries

    def watch_lists(self) -> list[tuple[object, tuple[OperationT, ...]]]:
        """Return each key with its operations, those included that are completed."""
        with self._lock:
            lists = self._operations_by_key.items()
            return [(key, tuple(operations)) for key, operations in lists]

    def clear(self) -> None:
        """Drop all lists."""
        with self._lock:
            self._operations_by_key.clear()
            self._entries = 0

    def _drop_completed(self, key: object) -> None:
        """Replace the list of `key` by one without completed operations. The lock is held."""
        operations = self._operations_by_key.get(key)
        if operations is None:
            return
        for operation in operations:
            if not operation.completed:
                break
        else:
            self._entries -= len(operations)
            del self._operations_by_key[key]
            return
        remaining = [operation for operation in operations if not operation.completed]
        if len(remaining) < len(operations):
            self._entries -= len(operations) - len(remaining)
            self._operations_by_key[key] = remaining
