"""CRC-32C of record batches and files: by the C package `crc32c`, otherwise by a table in Python.

Mirrors `Crc32C`. Both return the same. The table takes about 800 times as long: enough for the small records of
tests, and for Pythons without C extensions, as in a browser.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_POLYNOMIAL: Final = 0x82F63B78
"""Castagnoli's polynomial, lowest bit first."""


@cache
def _table() -> tuple[int, ...]:
    """Return the checksum of each single byte."""
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


def crc32c_by_table(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the checksum of `data`; `value` is that of what comes before it."""
    table, crc = _table(), value ^ 0xFFFFFFFF
    for byte in memoryview(data).cast("B"):
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@cache
def _implementation() -> Callable[[bytes | bytearray | memoryview, int], int]:
    """Return the package's function; called with the first record, because importing the package is slow."""
    try:
        from crc32c import crc32c as in_c  # noqa: PLC0415 - see above
    except ImportError:
        return crc32c_by_table
    return in_c


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the checksum of `data`; `value` is that of what comes before it."""
    return _implementation()(data, value)
