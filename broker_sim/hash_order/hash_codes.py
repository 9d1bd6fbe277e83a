"""Java's hash codes, as unsigned 32-bit integers."""

from __future__ import annotations

from functools import lru_cache
from operator import mul
from struct import Struct, unpack
from typing import Final

INT_MASK: Final = 0xFFFFFFFF
MAX_CACHED_HASHES: Final = 100_000
"""Maximum number of cached hash codes of each kind."""
_PIECE: Final = 64
_POWERS: Final = tuple(pow(31, exponent, 1 << 32) for exponent in range(_PIECE, -1, -1))
"""Powers of 31, from the highest exponent down to 0."""
_UUID: Final = Struct(">QQ")


@lru_cache(MAX_CACHED_HASHES)
def java_hash_code(text: str) -> int:
    """Return `String.hashCode`."""
    data = text.encode("utf-16-le", "surrogatepass")
    units = unpack(f"<{len(data) // 2}H", data)
    value = 0
    # Whole pieces at once: one step per unit takes twice as long.
    for start in range(0, len(units), _PIECE):
        piece = units[start : start + _PIECE]
        powers = _POWERS[-len(piece) - 1 :]
        value = value * powers[0] + sum(map(mul, piece, powers[1:]))
    return value & INT_MASK


string_hash: Final = java_hash_code


@lru_cache(MAX_CACHED_HASHES)
def uuid_hash(uuid: bytes) -> int:
    """Return the hash code of Kafka's `Uuid`."""
    numbers: tuple[int, int] = _UUID.unpack(uuid)
    mixed = numbers[0] ^ numbers[1]
    return (mixed >> 32 ^ mixed) & INT_MASK


def integer_hash(number: int) -> int:
    """Return `Integer.hashCode`."""
    return number & INT_MASK


def topic_partition_hash(topic: str | None, partition: int) -> int:
    """Return the hash code of Kafka's `TopicPartition`; a null name hashes to 0."""
    return (31 * (31 + partition) + (0 if topic is None else java_hash_code(topic))) & INT_MASK


def topic_id_partition_hash(topic_id: bytes, partition: int, topic: str | None) -> int:
    """Return the hash code of Kafka's `TopicIdPartition`."""
    return (31 * (31 + uuid_hash(topic_id)) + topic_partition_hash(topic, partition)) & INT_MASK
