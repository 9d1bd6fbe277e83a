"""The watch lists of a purgatory: which operations wait for events on which key.

Mirrors the inner classes Watchers and WatcherList of Kafka's DelayedOperationPurgatory. Deliberate
differences: one dictionary of all keys under the purgatory's lock instead of 512 under locks of
their own; an operation is watched under all its keys in one step; operations are tried from a copy
of the list. An operation that is added meanwhile is tried after it was added, so it misses no event. Operations that
are parked under the same keys again and again have a KeySet and are in no list.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from broker_sim_purgatory._timer_task_entry import TaskOwner
from broker_sim_purgatory.delayed_operation import DelayedOperation
from broker_sim_purgatory.key_set import KeySet

OperationT = TypeVar("OperationT", bound=DelayedOperation)

KEYS_PER_PURGE_STEP = 1_000
"""Number of keys that a purge examines per step; between steps other threads get the lock."""


class WatcherList(Generic[OperationT]):
    """The operations under each key, in the order in which they came.

    Any thread may call. Methods take the lock of `owner` unless they say that the caller holds it.
    """

    __slots__ = ("_left_over", "_numbers", "_owner", "_parked", "entries", "operations_by_key", "sets_by_key")

    def __init__(self, owner: TaskOwner) -> None:
        self._owner = owner
        self._parked = 0
        self._numbers = False
        """Whether a set has ever been in use: from then on operations are numbered to keep their order across
        lists."""
        self.entries = 0
        """Number of entries in all lists and sets."""
        self.operations_by_key: dict[object, list[OperationT]] = {}
        """Guarded by the lock; membership of a key may be tested without it."""
        self.sets_by_key: dict[object, list[KeySet[OperationT]]] = {}
        """The same for sets; the list is empty if only `_left_over` has the key."""
        self._left_over: dict[object, int] = {}
        """Completed operations under keys that have left their sets."""

    def key_set(self, few_keys: int) -> KeySet[OperationT]:
        """Return a new, empty set."""
        return KeySet(self, few_keys)

    def watch(self, operation: OperationT, keys: Iterable[object]) -> None:
        """Add `operation` to the list of each key, or to the set. The lock is held."""
        if isinstance(keys, KeySet) and (keys.in_use or len(keys.keys) > keys.few_keys):
            self._watch_under_set(operation, keys)
            return
        if self._numbers:
            self._parked += 1
            operation.watch_number = self._parked
        lists = self.operations_by_key
        for key in keys:
            operations = lists.get(key)
            if operations is None:
                lists[key] = [operation]
            else:
                operations.append(operation)
            self.entries += 1

    def _watch_under_set(self, operation: OperationT, key_set: KeySet[OperationT]) -> None:
        if not key_set.in_use:
            key_set.in_use = self._numbers = True
            for key in key_set.keys:
                self.sets_by_key.setdefault(key, []).append(key_set)
        self._move_into_lists(key_set)
        self._parked += 1
        operation.watch_number = self._parked
        key_set.take(operation)
        self.entries += len(key_set.keys)

    def unwatch(self, operation: OperationT, keys: Iterable[object]) -> None:
        """Take `operation` out of the list of each key, or out of the set."""
        with self._owner.lock:
            if isinstance(keys, KeySet) and keys.waiting is operation:
                self.entries -= len(keys.take_back())
                return
            for key in keys:
                operations = self.operations_by_key.get(key, [])
                others = [other for other in operations if other is not operation]
                self.entries -= len(operations) - len(others)
                if others:
                    self.operations_by_key[key] = others
                elif operations:
                    del self.operations_by_key[key]

    def check_and_complete(self, key: object, attempt: Callable[[OperationT], bool] | None) -> int:
        """Try the operations under `key`; return how many completed.

        `attempt` replaces `safe_try_complete` unless it is None. The lock is not held during the attempts, because
        an attempt may complete, park or wake anything.
        """
        lock = self._owner.lock
        lock.acquire()
        try:
            operations = self.operations_by_key.get(key)
            sets = self.sets_by_key.get(key)
            if sets is not None:
                self._drop_completed_in_sets(key, sets)
                operations = self._with_sets(operations, sets, key)
            elif operations is not None:
                operations = operations.copy()
            else:
                return 0
        finally:
            lock.release()
        completed = 0
        any_completed = False
        for operation in operations:
            if operation.completed:
                any_completed = True
            elif DelayedOperation.safe_try_complete(operation) if attempt is None else attempt(operation):
                completed += 1
        if completed or any_completed:
            lock.acquire()
            try:
                dropped = self._drop_completed(key)
                if sets is not None:
                    self._drop_completed_in_sets(key, sets)
            finally:
                lock.release()
            del dropped
        return completed

    def cancel(self, key: object) -> list[OperationT]:
        """Drop the list of `key`; return its operations that are not completed."""
        with self._owner.lock:
            operations = self.operations_by_key.pop(key, [])
            self.entries -= len(operations)
            sets = self.sets_by_key.get(key)
            if sets is not None:
                operations = self._with_sets(operations, sets, key)
                self._drop_completed_in_sets(key, sets)
                for key_set in sets:
                    self.entries -= key_set.entries_under(key)
                    key_set.dropped[key] = key_set.parked
            return [operation for operation in operations if not operation.completed]

    def purge_completed(self) -> int:
        """Drop completed operations and empty lists; return the number of dropped entries."""
        purged = 0
        with self._owner.lock:
            keys = list(self.operations_by_key)
        for start in range(0, len(keys), KEYS_PER_PURGE_STEP):
            with self._owner.lock:
                before = self.entries
                step = keys[start : start + KEYS_PER_PURGE_STEP]
                dropped = [self._drop_completed(key) for key in step]
                purged += before - self.entries
            del dropped
        with self._owner.lock:
            return purged + self._purge_sets()

    def counts(self) -> tuple[int, int]:
        """Return the number of keys and of watched entries; O(n) with sets. The lock is held."""
        keys = len(self.operations_by_key)
        for key in self.sets_by_key:
            if key not in self.operations_by_key and self._entries_in_sets(key):
                keys += 1
        return keys, self.entries

    def watched_by_key(self) -> list[tuple[object, tuple[OperationT, ...], int]]:
        """Return each key, its operations, and the number of completed operations in sets. The lock is held.

        The operations include completed ones of lists, but not of sets.
        """
        watched = []
        for key in {**self.operations_by_key, **self.sets_by_key}:
            operations = self.operations_by_key.get(key)
            sets = self.sets_by_key.get(key)
            if sets is None:
                watched.append((key, tuple(operations or ()), 0))
                continue
            listed = 0 if operations is None else len(operations)
            operations = self._with_sets(operations, sets, key)
            completed = self._entries_in_sets(key) - (len(operations) - listed)
            if operations or completed:
                watched.append((key, tuple(operations), completed))
        return watched

    def clear(self) -> None:
        """Drop all lists."""
        with self._owner.lock:
            dropped = self.operations_by_key
            self.operations_by_key = {}
            for key_set in self._sets():
                key_set.waiting = None
                key_set.drop_completed()
            self._left_over.clear()
            self.entries = 0
        del dropped

    def add_key(self, key_set: KeySet[OperationT], key: object) -> None:
        """Add a key to a set."""
        with self._owner.lock:
            if key in key_set.keys:
                return
            if key_set.in_use:
                self._move_into_lists(key_set)
            key_set.keys[key] = None
            key_set.version += 1
            if not key_set.in_use:
                return
            key_set.dropped[key] = key_set.parked
            self.sets_by_key.setdefault(key, []).append(key_set)

    def discard_key(self, key_set: KeySet[OperationT], key: object) -> None:
        """Take a key out of a set; its completed operations count until they are dropped."""
        with self._owner.lock:
            if key not in key_set.keys:
                return
            if key_set.in_use:
                self._move_into_lists(key_set)
            count = key_set.entries_under(key)
            del key_set.keys[key]
            key_set.version += 1
            if not key_set.in_use:
                return
            key_set.dropped.pop(key, None)
            sets = self.sets_by_key[key]
            sets.remove(key_set)
            if count:
                self._left_over[key] = self._left_over.get(key, 0) + count
            elif not sets and key not in self._left_over:
                del self.sets_by_key[key]

    def _move_into_lists(self, key_set: KeySet[OperationT]) -> None:
        """Move the waiting operation of the set into the lists of its keys. The lock is held."""
        operation = key_set.waiting
        if operation is None or operation.completed:
            return
        for key in key_set.take_back():
            operations = self.operations_by_key.setdefault(key, [])
            operations.append(operation)
            operations.sort(key=_number)

    def _with_sets(
        self, operations: list[OperationT] | None, sets: list[KeySet[OperationT]], key: object
    ) -> list[OperationT]:
        """Return the operations and those that wait under `key` in sets, in order of arrival. The lock is held."""
        waiting = [] if operations is None else operations.copy()
        for key_set in sets:
            operation = key_set.operation_under(key)
            if operation is not None:
                waiting.append(operation)
        if len(waiting) > 1:
            waiting.sort(key=_number)
        return waiting

    def _drop_completed_in_sets(self, key: object, sets: list[KeySet[OperationT]]) -> None:
        """Drop the completed operations under `key` in sets. The lock is held."""
        for key_set in sets:
            self.entries -= key_set.drop_completed_under(key)
        if self._left_over:
            self.entries -= self._left_over.pop(key, 0)

    def _entries_in_sets(self, key: object) -> int:
        entries = self._left_over.get(key, 0)
        for key_set in self.sets_by_key[key]:
            entries += key_set.entries_under(key)
        return entries

    def _sets(self) -> list[KeySet[OperationT]]:
        """Return all sets that have a key. The lock is held."""
        by_id: dict[int, KeySet[OperationT]] = {}
        for sets in self.sets_by_key.values():
            for key_set in sets:
                by_id[id(key_set)] = key_set
        return list(by_id.values())

    def _purge_sets(self) -> int:
        """Drop the completed operations of all sets; return the number of dropped entries. The lock is held."""
        key_sets = self._sets()
        purged = sum(self._left_over.values())
        for key in self._left_over:
            if not self.sets_by_key[key]:
                del self.sets_by_key[key]
        self._left_over.clear()
        for key_set in key_sets:
            purged += key_set.drop_completed()
        self.entries -= purged
        return purged

    def _drop_completed(self, key: object) -> list[OperationT] | None:
        """Drop the completed operations under `key`; return the former list. The lock is held.

        The caller frees that list after it has released the lock: freeing an operation may run the user's code.
        """
        operations = self.operations_by_key.get(key)
        if operations is None:
            return None
        for operation in operations:
            if not operation.completed:
                break
        else:
            self.entries -= len(operations)
            del self.operations_by_key[key]
            return operations
        waiting = [operation for operation in operations if not operation.completed]
        self.entries -= len(operations) - len(waiting)
        self.operations_by_key[key] = waiting
        return operations


def _number(operation: DelayedOperation) -> int:
    return operation.watch_number
