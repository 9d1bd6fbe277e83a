"""The order of Scala's maps: `mutable.HashMap`, and `Map` as `toMap` makes it.

Two keys of one hash code stay as they were given; of all others the order follows from their hash codes
alone, however they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from broker_sim.hash_order.hash_codes import INT_MASK

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

K = TypeVar("K")

_SIGN: Final = 0x80000000
_INITIAL_CAPACITY: Final = 16
_SMALL_MAP: Final = 4
"""Number of keys up to which an immutable `Map` keeps the order in which they were added."""
_BITS: Final = 5
_NODE_MASK: Final = (1 << _BITS) - 1
_HASH_BITS: Final = 32


def mutable_map_order(keys: Collection[K], hash_code: Callable[[K], int]) -> list[K]:
    """Return the keys as a `mutable.HashMap` iterates over them: buckets, with the least hash code first."""
    capacity = _INITIAL_CAPACITY
    while len(keys) * 4 >= capacity * 3:
        capacity *= 2
    mask = capacity - 1

    def place(key: K) -> tuple[int, int]:
        code = hash_code(key)
        code ^= code >> 16
        return code & mask, code ^ _SIGN  # from the least negative number on

    return sorted(keys, key=place)


def to_map_order(keys: Collection[K], hash_code: Callable[[K], int]) -> list[K]:
    """Return the keys as the `toMap` of a `mutable.HashMap` iterates over them.

    Above four keys that is a trie: five bits of a hash code choose the place in a node, which has its own keys
    before its nodes.
    """
    ordered = mutable_map_order(keys, hash_code)
    if len(ordered) <= _SMALL_MAP:
        return ordered
    return _trie_order([(_improved(hash_code(key)), key) for key in ordered], 0)


def group_by_order(keys: Collection[K], hash_code: Callable[[K], int]) -> list[K]:
    """Return the keys as the map that a `groupBy` has made iterates over them: a trie, however few they are."""
    return _trie_order([(_improved(hash_code(key)), key) for key in keys], 0)


def _trie_order(entries: Sequence[tuple[int, K]], shift: int) -> list[K]:
    if shift >= _HASH_BITS:
        return [key for _, key in entries]
    places: dict[int, list[tuple[int, K]]] = {}
    for entry in entries:
        places.setdefault(entry[0] >> shift & _NODE_MASK, []).append(entry)
    own, nodes = [], []
    for place in sorted(places):
        branch = places[place]
        if len(branch) == 1:
            own.append(branch[0][1])
        else:
            nodes += _trie_order(branch, shift + _BITS)
    return own + nodes


def _improved(code: int) -> int:
    """Return what `scala.collection.Hashing.improve` makes of a hash code."""
    code = code + (~(code << 9) & INT_MASK) & INT_MASK
    code ^= code >> 14
    code = code + (code << 4) & INT_MASK
    return code ^ code >> 10
