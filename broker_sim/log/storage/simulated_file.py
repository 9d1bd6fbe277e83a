"""The bytes of one simulated file, in the page cache and on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import random

SECTOR_BYTES: Final = 512
LOST_SECTOR_SHARE: Final = 0.25
"""Probability that a sector in the middle of the surviving bytes was not written."""


class _Change(NamedTuple):
    """A write or a truncation that is not on the disk yet, with the bytes to undo it."""

    metadata_changes: int
    """Number of journal changes up to this one, which counts if it changes a size."""
    position: int
    written_bytes: int | None
    """None for a truncation, which has its new size as position."""
    old_bytes: int
    """The size of the file before the change."""
    replaced: bytes
    """The bytes that were overwritten or truncated."""

    def take_back(self, content: bytearray) -> bytes | None:
        """Undo the change in the content; return the written bytes, None for a truncation."""
        data = None
        if self.written_bytes is not None:
            data = bytes(content[self.position : self.position + self.written_bytes])
        del content[self.old_bytes :]
        content[self.position : self.position + len(self.replaced)] = self.replaced
        return data


class SimulatedFile:
    """One file, under any name. Only `SimulatedDisk` uses it.

    It has all bytes once, as processes see them, plus the bytes that unflushed changes have replaced.
    """

    __slots__ = ("_unflushed", "content", "modified_ns")

    def __init__(self, modified_ns: int) -> None:
        self.content = bytearray()
        """The page cache, which processes see."""
        self.modified_ns = modified_ns
        self._unflushed: list[_Change] = []

    def write(self, position: int, data: bytes | memoryview, metadata_changes: int) -> None:
        """Write into the page cache."""
        old_bytes = len(self.content)
        replaced = bytes(self.content[position : position + len(data)])
        _write(self.content, position, data)
        self._unflushed.append(_Change(metadata_changes, position, len(data), old_bytes, replaced))

    def truncate(self, size_bytes: int, metadata_changes: int) -> None:
        """Truncate the file in the page cache, or extend it with zeros."""
        old_bytes, replaced = len(self.content), bytes(self.content[size_bytes:])
        _truncate(self.content, size_bytes)
        self._unflushed.append(_Change(metadata_changes, size_bytes, None, old_bytes, replaced))

    def flush(self) -> None:
        """Flush the content to the disk."""
        self._unflushed.clear()

    def lose_power(self, metadata_changes: int, rng: random.Random) -> None:
        """Drop the page cache; `metadata_changes` is the number of surviving changes in the journal.

        Truncations survive with the journal. A random number of writes survive, the last of them up to a random
        sector, and possibly with one sector missing in between. A write that has grown the file survives only with
        all earlier journal changes.
        """
        writes = [each.take_back(self.content) for each in reversed(self._unflushed)]
        changes = [
            (each.position, data)
            for each, data in zip(self._unflushed, reversed(writes), strict=True)
            if each.metadata_changes <= metadata_changes
        ]
        stored = bytes(self.content)
        survivors = rng.randint(0, len(changes))
        last: tuple[int, int] | None = None
        for number, (position, data) in enumerate(changes):
            if data is None:
                _truncate(self.content, position)
            elif number < survivors:
                if number == survivors - 1 and rng.random() < 0.5:
                    data = _torn(position, data, rng)  # noqa: PLW2901
                _write(self.content, position, data)
                last = (position, position + len(data))
        if last is not None and rng.random() < LOST_SECTOR_SHARE:
            _lose_sector(self.content, stored, rng.randint(*last))
        self.flush()


def _lose_sector(content: bytearray, stored: bytes, position: int) -> None:
    """Restore the disk's content of the sector of that byte: zeros where it had none."""
    start = position - position % SECTOR_BYTES
    end = min(start + SECTOR_BYTES, len(content))
    if start < end:
        content[start:end] = stored[start:end].ljust(end - start, b"\0")


def _torn(position: int, data: bytes, rng: random.Random) -> bytes:
    """Return the bytes of the first sectors; a sector is written whole or not at all."""
    first_size = SECTOR_BYTES - position % SECTOR_BYTES
    sizes = [0, *range(first_size, len(data), SECTOR_BYTES), len(data)]
    return data[: rng.choice(sizes)]


def _write(content: bytearray, position: int, data: bytes | memoryview) -> None:
    if not data:
        return
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _truncate(content: bytearray, size_bytes: int) -> None:
    if size_bytes > len(content):
        content.extend(bytes(size_bytes - len(content)))
    del content[size_bytes:]
