"""Which partition a group or a transactional id is in; clients and brokers have to agree on it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from broker_sim.hash_order.hash_codes import INT_MASK, java_hash_code

_MAX_INT: Final = 0x7FFFFFFF
_MIN_INT: Final = 0x80000000


@lru_cache(maxsize=4_096)
def partition_of_key(key: str, partitions: int) -> int:
    """Return the partition that a group or a transactional id of that name is in."""
    return partition_of_hash(java_hash_code(key), partitions)


def partition_of_hash(code: int, partitions: int) -> int:
    """Return the partition for an unsigned hash code: Kafka's `Utils.abs` of it, which is signed."""
    if code > _MAX_INT:
        code = 0 if code == _MIN_INT else INT_MASK + 1 - code
    return code % partitions
