"""The machine's memory: its size, and returning freed memory to the system."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

_CONTAINER_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_UNKNOWN_MACHINE_BYTES: Final = 4 << 30
_UNITS: Final = {"": 0, "B": 0, "KB": 10, "MB": 20, "GB": 30, "TB": 40}
_SIZE: Final = re.compile(r"(\d+)\s*([KMGT]?B)?", re.IGNORECASE)


def parse_memory_limit(value: int | str) -> int:
    """Return a memory limit in bytes, from a number or a text such as `512MB` or `2GB`.

    A kilobyte has 1024 bytes. Raises ValueError for anything else, and for zero.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    size = 0 if match is None else int(match[1]) << _UNITS[(match[2] or "").upper()]
    if not size:
        raise ValueError(f"memory limit {value!r}: pass bytes, or a size such as 512MB or 2GB")
    return size


@cache
def default_memory_limit() -> int:
    """Return half of the memory of the machine, or of its container's limit, in bytes."""
    sizes = [_UNKNOWN_MACHINE_BYTES]
    with suppress(AttributeError, OSError, ValueError):  # Windows has no sysconf
        sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in _CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            sizes.append(int(path.read_text("ascii")))
    return min(sizes) // 2


@cache
def _malloc_trim() -> Any:
    """Return glibc's `malloc_trim`, None with other C libraries."""
    import ctypes  # noqa: PLC0415 - a start does not need it

    with suppress(AttributeError, OSError, TypeError):  # TypeError: Windows
        return ctypes.CDLL(None).malloc_trim
    return None


def return_freed_memory() -> bool:
    """Return freed memory to the system; return whether there was any.

    glibc keeps freed memory otherwise. With other C libraries this does nothing.
    """
    malloc_trim = _malloc_trim()
    return malloc_trim is not None and bool(malloc_trim(0))
