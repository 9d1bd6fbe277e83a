"""Which partition a group or a transactional id is in; clients and brokers have to agree on it."""

from __future__ import annotations

from functools import lru_cache
from operator import mul
from struct import unpack
from typing import Final

__all__ = ["INT_MASK", "KNOWN_HASHES", "java_hash_code", "partition_of_hash", "partition_of_key"]

INT_MASK: Final = 0xFFFFFFFF
_MAX_INT: Final = 0x7FFFFFFF
_MIN_INT: Final = 0x80000000
KNOWN_HASHES: Final = 100_000
"""So many hash codes of a kind are kept."""
_PIECE: Final = 64
_POWERS: Final = tuple(pow(31, exponent, 1 << 32) for exponent in range(_PIECE, -1, -1))
"""Of 31; that of exponent 0 is the last one."""


@lru_cache(KNOWN_HASHES)
def java_hash_code(text: str) -> int:
    """Return Java's `String.hashCode`, as an unsigned number of 32 bits."""
    data = text.encode("utf-16-le", "surrogatepass")
    units = unpack(f"<{len(data) // 2}H", data)
    value = 0
    # All units of a piece at once: a step for each takes twice as long.
    for start in range(0, len(units), _PIECE):
        piece = units[start : start + _PIECE]
        powers = _POWERS[-len(piece) - 1 :]
        value = value * powers[0] + sum(map(mul, piece, powers[1:]))
    return value & INT_MASK


@lru_cache(maxsize=4_096)
def partition_of_key(key: str, partitions: int) -> int:
    """Return the partition that a group or a transactional id of that name is in."""
    return partition_of_hash(java_hash_code(key), partitions)


def partition_of_hash(code: int, partitions: int) -> int:
    """Return the partition for an unsigned hash code: Kafka's `Utils.abs` of it, which is signed."""
    if code > _MAX_INT:
        code = 0 if code == _MIN_INT else INT_MASK + 1 - code
    return code % partitions
