"""A set of keys under which one operation after the other waits, at a cost independent of the number of keys.

Kafka has no counterpart: it puts a follower's fetch of thousands of partitions into as many lists, twice a
second. With a KeySet the lists stay, and only the operation in them changes. Everything visible is as in
Kafka: the order of attempts, the figures, and that completed operations count until they are dropped.

The set knows for each key how many operations were dropped there:

    parked 7, floor 4, dropped {"b": 6}     under "a": 3 entries, operations 5 to 7
                                            under "b": 1 entry, operation 7
"""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from broker_sim_purgatory.delayed_operation import DelayedOperation

OperationT = TypeVar("OperationT", bound=DelayedOperation)


class KeySetOwner(Protocol[OperationT]):
    """The watch lists that a set belongs to."""

    def add_key(self, key_set: "KeySet[OperationT]", key: object, /) -> None:
        """Add a key to the set."""

    def discard_key(self, key_set: "KeySet[OperationT]", key: object, /) -> None:
        """Take a key out of the set."""


class KeySet(Generic[OperationT]):
    """Made by `DelayedOperationPurgatory.key_set`; given to `try_complete_else_watch` in place of keys.

    With at most `few_keys` keys it acts like a plain list of keys, which is faster for so few. One operation at a
    time waits under the set. If it still waits when the next one comes or the keys change, it stays under the keys it
    was parked under. Any thread may call.
    """

    __slots__ = ("_owner", "dropped", "few_keys", "floor", "in_use", "keys", "parked", "version", "waiting")

    def __init__(self, owner: KeySetOwner[OperationT], few_keys: int) -> None:
        self._owner = owner
        self.few_keys = few_keys
        self.in_use = False
        """Whether operations wait under the set itself, not in the lists of its keys."""
        self.keys: dict[object, None] = {}
        self.version = 0
        """Number of times the keys changed."""
        self.waiting: OperationT | None = None
        """The operation parked last, unless it was moved into lists of its own."""
        self.parked = 0
        """Number of operations parked so far; this field and the next ones are guarded by the purgatory's lock."""
        self.floor = 0
        """Number of those operations that were dropped under all keys."""
        self.dropped: dict[object, int] = {}
        """The same per key, for keys under which more were dropped."""

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[object]:
        return iter(self.keys)

    def __contains__(self, key: object) -> bool:
        return key in self.keys

    def add(self, key: object) -> None:
        """Watch under `key` too, from the next operation on."""
        self._owner.add_key(self, key)

    def discard(self, key: object) -> None:
        """Stop watching under `key`, from the next operation on."""
        self._owner.discard_key(self, key)

    def clear(self) -> None:
        """Discard all keys; clear a set that is no longer needed."""
        for key in list(self.keys):
            self._owner.discard_key(self, key)

    def operation_under(self, key: object) -> OperationT | None:
        """Return the operation that waits under one of the keys. The lock is held."""
        operation = self.waiting
        if operation is None or operation.completed or self.dropped.get(key, self.floor) == self.parked:
            return None
        return operation

    def entries_under(self, key: object) -> int:
        """Return how many operations count under one of the keys. The lock is held."""
        return self.parked - self.dropped.get(key, self.floor)

    def entries(self) -> int:
        """Return how many operations count under all keys. The lock is held."""
        floor = self.floor
        more = sum(dropped - floor for dropped in self.dropped.values())
        return len(self.keys) * (self.parked - floor) - more

    def completed(self) -> int:
        """Return how many of the parked operations are completed. The lock is held."""
        operation = self.waiting
        return self.parked if operation is None or operation.completed else self.parked - 1

    def drop_completed_under(self, key: object) -> int:
        """Drop the completed operations under one of the keys; return their number. The lock is held."""
        completed = self.completed()
        before = self.dropped.get(key, self.floor)
        if before >= completed:
            return 0
        self.dropped[key] = completed
        return completed - before

    def drop_completed(self) -> int:
        """Drop the completed operations under all keys; return the number of entries. The lock is held."""
        before = self.entries()
        parked, completed = self.parked, self.completed()
        self.dropped = (
            {} if completed == parked else {key: dropped for key, dropped in self.dropped.items() if dropped == parked}
        )
        self.floor = completed
        return before - self.entries()

    def take(self, operation: OperationT) -> None:
        """Make `operation` wait under all keys. The lock is held, and no other operation waits."""
        self.waiting = operation
        self.parked += 1

    def take_back(self) -> list[object]:
        """Undo `take`; return the keys under which the operation was not dropped. The lock is held."""
        parked = self.parked
        dropped = self.dropped
        floor = self.floor
        keys = [key for key in self.keys if dropped.get(key, floor) < parked]
        for key, count in dropped.items():
            if count == parked:
                dropped[key] = parked - 1
        self.parked = parked - 1
        self.waiting = None
        return keys
