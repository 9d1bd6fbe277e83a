"""Waits for a key of the terminal, so that a live picture can be left with one."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from threading import Event
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAVES = (b"q", b"Q", b"")
"""The keys that leave; nothing at all is read where the terminal is gone."""


@contextlib.contextmanager
def keys_at_once() -> Iterator[int | None]:
    """Let keys count without the enter key; gives the terminal's descriptor, None without a terminal.

    It is None, too, where Python has no termios (Windows): ctrl-C works everywhere.
    """
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield None
        return
    import termios  # noqa: PLC0415 - Windows has none
    import tty  # noqa: PLC0415 - the same

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def is_left(descriptor: int | None, seconds: float) -> bool:
    """Wait that long for a key; return whether it was one that quits. Other keys end the wait too."""
    if descriptor is None:
        Event().wait(seconds)
        return False
    ready, _, _ = select.select([descriptor], [], [], seconds)
    return bool(ready) and os.read(descriptor, 1) in LEAVES
