"""The last offset of each key in the dirty part of a log; mirrors `SkimpyOffsetMap`.

Deliberate difference: keys are kept as they are, where Kafka keeps their MD5. A key counts as 24 bytes of
the buffer all the same (the hash and an offset), so that a map is full where Kafka's is.
"""

from __future__ import annotations

from typing import Final

_BYTES_PER_ENTRY: Final = 24


class OffsetMap:
    """Offsets by key, and the offset up to which the log has been mapped."""

    __slots__ = ("_max_keys", "_offsets", "_slots", "latest_offset")

    def __init__(self, buffer_bytes: int, load_factor: float) -> None:
        """Create an empty map for as many keys as fill that share of the buffer, at least one."""
        self._slots = max(buffer_bytes // _BYTES_PER_ENTRY, 1)
        self._max_keys = max(int(self._slots * load_factor), 1)
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = -1
        """The last offset that has been mapped; the records after it stay as they are."""

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether no more keys may be put."""
        return len(self._offsets) >= self._max_keys

    @property
    def utilization(self) -> float:
        """The share of the buffer that is used, from 0 to 1."""
        return len(self._offsets) / self._slots

    def put(self, key: bytes, offset: int) -> None:
        """Set the offset of a key."""
        self._offsets[key] = offset

    def get(self, key: bytes) -> int:
        """Return the offset of a key, -1 if it is not in the map."""
        return self._offsets.get(key, -1)

    def update_latest_offset(self, offset: int) -> None:
        """Note that the log has been mapped up to an offset."""
        self.latest_offset = offset
