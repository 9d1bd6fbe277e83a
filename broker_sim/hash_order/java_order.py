"""The iteration order of `java.util.HashMap` and Kafka's `TimelineHashMap`.

Kafka's assignors iterate over hash tables, so assignments and the order of log records depend on it.
Mirrors the layout of `java.util.HashMap` (and `HashSet`) and `org.apache.kafka.timeline.TimelineHashMap`,
as long as no bucket of a `HashMap` holds eight keys, which Java would turn into a tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")

_MASK_64: Final = 0xFFFFFFFFFFFFFFFF
_SIGN_32: Final = 0x80000000
_FIBONACCI: Final = 0x9E3779B97F4A7C15
_DEFAULT_CAPACITY: Final = 16


def table_capacity(minimum: int) -> int:
    """Return the number of buckets of `new HashMap<>(minimum)`."""
    return 1 << max(minimum - 1, 0).bit_length()


def copied_capacity(size: int) -> int:
    """Return the number of buckets of `new HashSet<>(collection)` for a collection of that size."""
    return table_capacity(max(int(size / 0.75) + 1, _DEFAULT_CAPACITY))


def hash_order(keys: Collection[K], hash_code: Callable[[K], int], capacity: int = _DEFAULT_CAPACITY) -> list[K]:
    """Return keys, which are in insertion order, in the iteration order of a `HashMap`.

    `capacity` is its initial number of buckets, a power of two.
    """
    while len(keys) * 4 > capacity * 3:
        capacity *= 2
    mask = capacity - 1

    def bucket(key: K) -> int:
        code = hash_code(key)
        return (code ^ code >> 16) & mask

    return sorted(keys, key=bucket)


class HashTable(dict[K, V]):
    """A dictionary that also has the iteration order of a `HashMap` with the same history.

    Write with `put` or `add`, remove with `pop` or `del`; iterating over it directly gives Python's order.
    """

    __slots__ = ("_capacity", "_hash_code", "_places", "_writes")

    def __init__(self, hash_code: Callable[[K], int], capacity: int = _DEFAULT_CAPACITY) -> None:
        super().__init__()
        self._hash_code = hash_code
        self._capacity = capacity
        self._places: dict[K, int] = {}
        self._writes = 0

    def put(self, key: K, value: V) -> None:
        """Set the value of a key; a new key goes last in its bucket, like `HashMap.put`."""
        if key not in self:
            self._writes += 1
            self._places[key] = self._writes
        self[key] = value
        if len(self) * 4 > self._capacity * 3:
            self._capacity *= 2

    def add(self, key: K, value: V) -> None:
        """Add a new key; it goes first in its bucket, like `HashMap.computeIfAbsent`."""
        if len(self) * 4 > self._capacity * 3:
            self._capacity *= 2
        self._writes += 1
        self._places[key] = -self._writes
        self[key] = value

    def __delitem__(self, key: K) -> None:
        super().__delitem__(key)
        del self._places[key]

    def pop(self, key: K, *default: Any) -> Any:
        """Remove a key and return its value, or the default."""
        self._places.pop(key, None)
        return super().pop(key, *default)

    def values_in_order(self) -> list[V]:
        """Return the values in the iteration order of a `HashMap`."""
        return [self[key] for key in self.in_order()]

    def in_order(self) -> list[K]:
        """Return the keys in the iteration order of a `HashMap`."""
        mask = self._capacity - 1

        def place(key: K) -> tuple[int, int]:
            code = self._hash_code(key)
            return (code ^ code >> 16) & mask, self._places[key]

        return sorted(self, key=place)


class TimelineMap(dict[K, V]):
    """A dictionary that also has the iteration order of a `TimelineHashMap` with the same history.

    Write with `put` and remove with `pop` or `del`; iterating over it directly gives Python's order.
    """

    __slots__ = ("_capacity", "_hash_code")

    def __init__(self, hash_code: Callable[[K], int]) -> None:
        super().__init__()
        self._hash_code = hash_code
        self._capacity = 2

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        if (len(self) + 1) * 3 > self._capacity * 4:
            self._capacity *= 2
        self[key] = value

    def in_order(self) -> list[K]:
        """Return the keys in the iteration order of a `TimelineHashMap`."""
        shift = 65 - self._capacity.bit_length()

        def slot(key: K) -> int:
            code = self._hash_code(key)
            if code & _SIGN_32:
                code -= 1 << 32
            return (code * _FIBONACCI & _MASK_64) >> shift

        # The sort is stable: within a bucket the newest key comes first.
        keys = list(self)
        keys.reverse()
        keys.sort(key=slot)
        return keys
