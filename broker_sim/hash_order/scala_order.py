"""The iteration order of Scala's maps: `mutable.HashMap`, and the `Map` built by `toMap`.

Keys with equal hash codes keep their given order; the order of all others depends on hash codes alone.
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
"""Maximum size at which an immutable `Map` keeps insertion order."""
_BITS: Final = 5
_NODE_MASK: Final = (1 << _BITS) - 1
_HASH_BITS: Final = 32


def mutable_map_order(keys: Collection[K], hash_code: Callable[[K], int]) -> list[K]:
    """Return the keys in the order of a `mutable.HashMap`: by bucket, then by hash code."""
    capacity = _INITIAL_CAPACITY
    while len(keys) * 4 >= capacity * 3:
        capacity *= 2
    mask = capacity - 1

    def place(key: K) -> tuple[int, int]:
        code = hash_code(key)
        code ^= code >> 16
        return code & mask, code ^ _SIGN  # compares the codes as signed numbers

    return sorted(keys, key=place)


def to_map_order(keys: Collection[K], hash_code: Callable[[K], int]) -> list[K]:
    """Return the keys in the order of `toMap` of a `mutable.HashMap`.

    With more than four keys it is a trie: five bits of a hash code choose the slot in a node, and a node's own
    keys come before its child nodes.
    """
    ordered = mutable_map_order(keys, hash_code)
    if len(ordered) <= _SMALL_MAP:
        return ordered
    return _trie_order([(_improved(hash_code(key)), key) for key in ordered], 0)


def group_by_order(keys: Collection[K], hash_code: Callable[[K], int]) -> list[K]:
    """Return the keys in the order of a map built by `groupBy`: a trie, however few they are."""
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
    """Return `scala.collection.Hashing.improve` of a hash code."""
    code = code + (~(code << 9) & INT_MASK) & INT_MASK
    code ^= code >> 14
    code = code + (code << 4) & INT_MASK
    return code ^ code >> 10
