"""The data that consumers exchange through their group coordinator. Kafka: ConsumerProtocol."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NO_GENERATION = -1


def subscription(
    topics: Iterable[str],
    *,
    owned: Mapping[str, Sequence[int]] | None = None,
    generation: int = NO_GENERATION,
    user_data: bytes | None = None,
    version: int = 3,
) -> bytes:
    """Return the metadata of a consumer's protocol (ConsumerProtocolSubscription)."""
    names = list(topics)
    data = struct.pack(">hi", version, len(names)) + b"".join(_string(name) for name in names)
    data += _nullable_bytes(user_data)
    if version >= 1:
        data += _partitions(owned or {})
    if version >= 2:
        data += struct.pack(">i", generation)
    if version >= 3:
        data += struct.pack(">h", -1)  # no rack
    return data


def assignment(partitions: Mapping[str, Sequence[int]], *, version: int = 3) -> bytes:
    """Return the partitions that a leader assigns to a member (ConsumerProtocolAssignment)."""
    return struct.pack(">h", version) + _partitions(partitions) + _nullable_bytes(None)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _nullable_bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _partitions(partitions: Mapping[str, Sequence[int]]) -> bytes:
    encoded = struct.pack(">i", len(partitions))
    for name, indexes in partitions.items():
        encoded += _string(name) + struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)
    return encoded
