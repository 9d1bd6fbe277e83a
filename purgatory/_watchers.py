"""The watch lists of a purgatory: which operations wait for events on which key.

Mirrors the inner classes Watchers and WatcherList of Kafka's DelayedOperationPurgatory. Deliberate
differences: one dictionary of all keys under the purgatory's lock instead of 512 under locks of
their own; an operation is watched under all its keys in one step; operations are tried from a copy
of the list. One that comes meanwhile tries itself after it has come, so it misses no event.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from purgatory._timer_task_entry import TaskOwner
from purgatory.delayed_operation import DelayedOperation

OperationT = TypeVar("OperationT", bound=DelayedOperation)

KEYS_PER_PURGE_STEP = 1_000
"""Keys that one step of a purge looks through; between the steps others get the lock."""


class WatcherList(Generic[OperationT]):
    """The operations under each key, in the order in which they came.

    Any thread may call. Methods take the lock of `owner`, the timer's; where the caller holds it
    instead, they say so.
    """

    __slots__ = ("_entries", "_operations_by_key", "_owner")

    def __init__(self, owner: TaskOwner) -> None:
        self._owner = owner
        self._entries = 0
        self._operations_by_key: dict[object, list[OperationT]] = {}

    def is_watched(self, key: object) -> bool:
        """Whether `key` has a list; without the lock, as a dictionary may be read at any time."""
        return key in self._operations_by_key

    def watch(self, operation: OperationT, keys: Iterable[object]) -> None:
        """Add `operation` to the list of each key. The lock is held."""
        lists = self._operations_by_key
        for key in keys:
            operations = lists.get(key)
            if operations is None:
                lists[key] = [operation]
            else:
                operations.append(operation)
            self._entries += 1

    def unwatch(self, operation: OperationT, keys: Iterable[object]) -> None:
        """Take `operation` out of the list of each key."""
        with self._owner.lock:
            for key in keys:
                operations = self._operations_by_key.get(key, [])
                others = [other for other in operations if other is not operation]
                self._entries -= len(operations) - len(others)
                if others:
                    self._operations_by_key[key] = others
                elif operations:
                    del self._operations_by_key[key]

    def check_and_complete(self, key: object, attempt: Callable[[OperationT], bool] | None) -> int:
        """Try the operations under `key`; return how many that completed.

        `attempt` stands for `safe_try_complete` if given. The lock is not held meanwhile, because
        an attempt may complete, park or wake anything.
        """
        lock = self._owner.lock
        lock.acquire()
        try:
            operations = self._operations_by_key.get(key)
            if operations is None:
                return 0
            operations = operations.copy()
        finally:
            lock.release()
        completed = 0
        any_completed = False
        for operation in operations:
            if operation.completed:
                any_completed = True
            elif (
                DelayedOperation.safe_try_complete(operation)
                if attempt is None
                else attempt(operation)
            ):
                completed += 1
        if completed or any_completed:
            lock.acquire()
            try:
                dropped = self._drop_completed(key)
            finally:
                lock.release()
            del dropped
        return completed

    def cancel(self, key: object) -> list[OperationT]:
        """Drop the list of `key`; return its operations that are not completed."""
        with self._owner.lock:
            operations = self._operations_by_key.pop(key, None)
            if operations is None:
                return []
            self._entries -= len(operations)
            return [operation for operation in operations if not operation.completed]

    def purge_completed(self) -> int:
        """Drop completed operations and empty lists; return how many entries went."""
        purged = 0
        with self._owner.lock:
            keys = list(self._operations_by_key)
        for start in range(0, len(keys), KEYS_PER_PURGE_STEP):
            with self._owner.lock:
                before = self._entries
                step = keys[start : start + KEYS_PER_PURGE_STEP]
                dropped = [self._drop_completed(key) for key in step]
                purged += before - self._entries
            del dropped
        return purged

    def counts(self) -> tuple[int, int]:
        """Return the number of keys and of watched entries. The lock is held."""
        return len(self._operations_by_key), self._entries

    def watch_lists(self) -> list[tuple[object, tuple[OperationT, ...]]]:
        """Return each key with its operations, completed ones included. The lock is held."""
        lists = self._operations_by_key.items()
        return [(key, tuple(operations)) for key, operations in lists]

    def clear(self) -> None:
        """Drop all lists."""
        with self._owner.lock:
            dropped = self._operations_by_key
            self._operations_by_key = {}
            self._entries = 0
        del dropped

    def _drop_completed(self, key: object) -> list[OperationT] | None:
        """Leave only what is not completed under `key`; return the list before. The lock is held.

        The caller frees that list when it has released the lock: an operation may be freed with it,
        and what an operation does then is the user's code.
        """
        operations = self._operations_by_key.get(key)
        if operations is None:
            return None
        for operation in operations:
            if not operation.completed:
                break
        else:
            self._entries -= len(operations)
            del self._operations_by_key[key]
            return operations
        waiting = [operation for operation in operations if not operation.completed]
        self._entries -= len(operations) - len(waiting)
        self._operations_by_key[key] = waiting
        return operations
