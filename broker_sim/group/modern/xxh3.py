"""XXH3 (64 bits), with which Kafka hashes a group's topics, for inputs of 4 bytes and more.

Mirrors `Hashing.xxh3_64` of hash4j, as `org.apache.kafka.coordinator.group.Utils` uses it: seed 0
and the algorithm's default secret.
"""

from __future__ import annotations

from struct import Struct, unpack_from
from typing import Final

from broker_sim.hash_order.hash_codes import INT_MASK

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_MASK: Final = 0xFFFFFFFFFFFFFFFF
_PRIME32_1: Final = 0x9E3779B1
_PRIME32_2: Final = 0x85EBCA77
_PRIME32_3: Final = 0xC2B2AE3D
_PRIME64_1: Final = 0x9E3779B185EBCA87
_PRIME64_2: Final = 0xC2B2AE3D27D4EB4F
_PRIME64_3: Final = 0x165667B19E3779F9
_PRIME64_4: Final = 0x85EBCA77C2B2AE63
_PRIME64_5: Final = 0x27D4EB2F165667C5
_AVALANCHE: Final = 0x165667919E3779F9
_RRMXMX: Final = 0x9FB21C651E98DF25

_STRIPE: Final = 64
_BLOCK: Final = 1024
_STRIPES_PER_BLOCK: Final = _BLOCK // _STRIPE
_SECRET_STEP: Final = 8
_SCRAMBLE_AT: Final = len(_SECRET) - _STRIPE
_LAST_STRIPE_AT: Final = _SCRAMBLE_AT - 7
_MERGE_AT: Final = 11
_MIDDLE_LAST_AT: Final = 119
_EIGHT: Final = Struct("<8Q")


def xxh3_64(data: bytes) -> int:
    """Return the hash of `data`, of at least 4 bytes, as a signed 64-bit integer."""
    size = len(data)
    assert size >= 4, "Kafka never hashes shorter inputs"
    if size <= 8:
        value = _upto_8(data)
    elif size <= 16:
        value = _upto_16(data)
    elif size <= 128:
        value = _upto_128(data)
    elif size <= 240:
        value = _upto_240(data)
    else:
        value = _long(data)
    return value - (1 << 64) if value >> 63 else value


def _u64(data: bytes, at: int) -> int:
    (value,) = unpack_from("<Q", data, at)
    number: int = value
    return number


def _fold(left: int, right: int) -> int:
    product = left * right
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value &= _MASK
    value ^= value >> 37
    value = value * _AVALANCHE & _MASK
    return value ^ value >> 32


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK


def _upto_8(data: bytes) -> int:
    size = len(data)
    first = int.from_bytes(data[:4], "little")
    last = int.from_bytes(data[-4:], "little")
    value = (last + (first << 32)) ^ (_u64(_SECRET, 8) ^ _u64(_SECRET, 16))
    value ^= _rotate(value, 49) ^ _rotate(value, 24)
    value = value * _RRMXMX & _MASK
    value ^= (value >> 35) + size
    value = value * _RRMXMX & _MASK
    return value ^ value >> 28


def _upto_16(data: bytes) -> int:
    size = len(data)
    low = _u64(data, 0) ^ (_u64(_SECRET, 24) ^ _u64(_SECRET, 32))
    high = _u64(data, size - 8) ^ (_u64(_SECRET, 40) ^ _u64(_SECRET, 48))
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return _avalanche(size + swapped + high + _fold(low, high))


def _mix(data: bytes, at: int, secret_at: int) -> int:
    return _fold(_u64(data, at) ^ _u64(_SECRET, secret_at), _u64(data, at + 8) ^ _u64(_SECRET, secret_at + 8))


def _upto_128(data: bytes) -> int:
    size = len(data)
    total = size * _PRIME64_1
    for step in range((size - 1) // 32, -1, -1):
        total += _mix(data, 16 * step, 32 * step)
        total += _mix(data, size - 16 * (step + 1), 32 * step + 16)
    return _avalanche(total)


def _upto_240(data: bytes) -> int:
    size = len(data)
    total = size * _PRIME64_1
    for step in range(8):
        total += _mix(data, 16 * step, 16 * step)
    total = _avalanche(total)
    for step in range(8, size // 16):
        total += _mix(data, 16 * step, 16 * (step - 8) + 3)
    return _avalanche(total + _mix(data, size - 16, _MIDDLE_LAST_AT))


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    values = _EIGHT.unpack_from(data, at)
    keys = _EIGHT.unpack_from(_SECRET, secret_at)
    for lane, value in enumerate(values):
        key = value ^ keys[lane]
        lanes[lane ^ 1] += value
        lanes[lane] += (key & INT_MASK) * (key >> 32)


def _long(data: bytes) -> int:
    lanes = [_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1]
    size = len(data)
    blocks = (size - 1) // _BLOCK
    scramble = _EIGHT.unpack_from(_SECRET, _SCRAMBLE_AT)
    for block in range(blocks):
        for stripe in range(_STRIPES_PER_BLOCK):
            _accumulate(lanes, data, block * _BLOCK + stripe * _STRIPE, stripe * _SECRET_STEP)
        for lane, key in enumerate(scramble):
            value = lanes[lane] & _MASK
            lanes[lane] = (value ^ value >> 47 ^ key) * _PRIME32_1 & _MASK
    for stripe in range((size - 1 - blocks * _BLOCK) // _STRIPE):
        _accumulate(lanes, data, blocks * _BLOCK + stripe * _STRIPE, stripe * _SECRET_STEP)
    _accumulate(lanes, data, size - _STRIPE, _LAST_STRIPE_AT)
    total = size * _PRIME64_1
    for pair in range(4):
        total += _fold(
            lanes[2 * pair] & _MASK ^ _u64(_SECRET, _MERGE_AT + 16 * pair),
            lanes[2 * pair + 1] & _MASK ^ _u64(_SECRET, _MERGE_AT + 16 * pair + 8),
        )
    return _avalanche(total)
