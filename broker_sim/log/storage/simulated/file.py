"""The bytes of one simulated file: those of the page cache, and those that are on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import random

__all__ = ["SimulatedFile"]

SECTOR_BYTES: Final = 512
LOST_SECTOR_SHARE: Final = 0.25
"""How often a sector in the middle of what survives was not written."""


class _Change(NamedTuple):
    """A write or, without data, a truncation, which is not on the disk yet."""

    metadata_changes: int
    """How many changes of names and sizes the disk's journal had before, and this one if it is one."""
    position: int
    data: bytes | None


class SimulatedFile:
    """One file, by whatever names. Only `SimulatedDisk` uses it."""

    __slots__ = ("_stored", "_unflushed", "content", "modified_ns")

    def __init__(self, modified_ns: int) -> None:
        self.content = bytearray()
        """What processes see: the page cache."""
        self.modified_ns = modified_ns
        self._stored = b""
        self._unflushed: list[_Change] = []

    def write(self, position: int, data: bytes, metadata_changes: int) -> None:
        """Write into the page cache."""
        _write(self.content, position, data)
        self._unflushed.append(_Change(metadata_changes, position, data))

    def truncate(self, size_bytes: int, metadata_changes: int) -> None:
        """Cut the file in the page cache, or fill it up with zeros."""
        _truncate(self.content, size_bytes)
        self._unflushed.append(_Change(metadata_changes, size_bytes, None))

    def flush(self) -> None:
        """Bring the content to the disk."""
        self._stored = bytes(self.content)
        self._unflushed.clear()

    def lose_power(self, metadata_changes: int, rng: random.Random) -> None:
        """Forget the page cache; so many changes of the journal have survived.

        Truncations survive with the journal. Of the writes before them some survive, the last of these
        up to any sector, and maybe not one sector in between. A write that has grown the file needs all the
        journal that was before it.
        """
        changes = [each for each in self._unflushed if each.metadata_changes <= metadata_changes]
        survivors = rng.randint(0, len(changes))
        content = bytearray(self._stored)
        last: tuple[int, int] | None = None
        for number, (_, position, data) in enumerate(changes):
            if data is None:
                _truncate(content, position)
            elif number < survivors:
                if number == survivors - 1 and rng.random() < 0.5:
                    data = _torn(position, data, rng)  # noqa: PLW2901
                _write(content, position, data)
                last = (position, position + len(data))
        if last is not None and rng.random() < LOST_SECTOR_SHARE:
            self._lose_sector(content, rng.randint(*last))
        self.content = content
        self.flush()

    def _lose_sector(self, content: bytearray, position: int) -> None:
        """Put back what the disk had in the sector of that byte: zeros where it had nothing."""
        start = position - position % SECTOR_BYTES
        end = min(start + SECTOR_BYTES, len(content))
        if start < end:
            content[start:end] = self._stored[start:end].ljust(end - start, b"\0")


def _torn(position: int, data: bytes, rng: random.Random) -> bytes:
    """Return the bytes of the first sectors; a sector is written whole or not at all."""
    first_size = SECTOR_BYTES - position % SECTOR_BYTES
    sizes = [0, *range(first_size, len(data), SECTOR_BYTES), len(data)]
    return data[: rng.choice(sizes)]


def _write(content: bytearray, position: int, data: bytes) -> None:
    if not data:
        return
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _truncate(content: bytearray, size_bytes: int) -> None:
    if size_bytes > len(content):
        content.extend(bytes(size_bytes - len(content)))
    del content[size_bytes:]
