"""Randomness in virtual time: `random`, `os.urandom` and their users follow from the seed.

All modules of the program draw from one stream. Each module of a library draws from a stream of its own, and so
does a module while it is imported: otherwise numbers drawn once in an OS process, by a late import or for a cache,
would change what the program draws, in its first run only.
"""

from __future__ import annotations

import os
import random
import sys
import uuid
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.virtual.core.locations import is_of_a_library
from broker_sim.runtime.virtual.loop import current_loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from broker_sim.runtime.virtual.loop import VirtualEventLoop

_BETWEEN = {"random", "secrets", "uuid", __name__}
"""Modules that draw on behalf of their caller."""
_LOOP = "broker_sim.runtime.virtual.loop"
_UUID_EPOCH_100NS = 0x01B21DD213814000
"""Units of 100 ns from 15 October 1582, where version 1 of UUIDs begins, to 1970."""


def _stream(loop: VirtualEventLoop) -> random.Random:
    """Return the stream of the caller: the program, a library module, or a module being imported."""
    frame = sys._getframe(2)
    while _module(frame) in _BETWEEN and frame.f_back is not None:
        frame = frame.f_back
    if is_of_a_library(frame.f_code.co_filename):
        return loop.stream(f"module {_module(frame)}")
    above: FrameType | None = frame
    while above is not None and _module(above) != _LOOP:
        if above.f_code.co_name == "<module>":
            return loop.stream(f"module {_module(above)}")
        above = above.f_back
    return loop.stream("program")


def _module(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name


def _draw(name: str) -> Callable[..., Any]:
    """Return the replacement of a function of `random`."""
    real = getattr(random, name)

    def draw(*args: Any, **kwargs: Any) -> Any:
        loop = current_loop()
        if loop is None:
            return real(*args, **kwargs)
        return getattr(_stream(loop), name)(*args, **kwargs)

    return draw


def _bytes(real: Callable[..., bytes]) -> Callable[..., bytes]:
    """Return the replacement of `urandom` or `getrandom`."""

    def draw_bytes(size: int, /, *args: Any, **kwargs: Any) -> bytes:
        loop = current_loop()
        return real(size, *args, **kwargs) if loop is None else _stream(loop).randbytes(size)

    return draw_bytes


_real_seed = random.Random.seed


def seed_of_random(self: random.Random, a: Any = None, version: int = 2) -> None:
    """Seed a generator; without a given seed it takes one from the loop, not from the system."""
    if a is None and (loop := current_loop()) is not None:
        a = _stream(loop).getrandbits(256)
    _real_seed(self, a, version)


_real_uuid1 = uuid.uuid1


def _uuid1(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
    loop = current_loop()
    if loop is None:
        return _real_uuid1(node, clock_seq)
    stream = _stream(loop)
    ticks = loop.clock.wall_clock_ns() // 100 + _UUID_EPOCH_100NS
    sequence = stream.getrandbits(14) if clock_seq is None else clock_seq
    fields = (
        ticks & 0xFFFFFFFF,
        (ticks >> 32) & 0xFFFF,
        (ticks >> 48) & 0x0FFF,
        (sequence >> 8) & 0x3F,
        sequence & 0xFF,
        stream.getrandbits(48) if node is None else node,
    )
    return uuid.UUID(fields=fields, version=1)


_GENERATORS = {"Random", "SystemRandom"}
_FUNCTIONS = sorted({*random.__all__} - _GENERATORS)

OS_REPLACEMENTS: dict[str, Callable[..., bytes]] = {
    name: _bytes(getattr(os, name)) for name in ("urandom", "getrandom") if hasattr(os, name)
}
UUID_REPLACEMENTS: dict[str, Callable[..., Any]] = {"uuid1": _uuid1}

# `random` keeps its own name of os.urandom, for SystemRandom and with it for `secrets`.
RANDOM_REPLACEMENTS: dict[str, Callable[..., Any]] = {
    "_urandom": _bytes(os.urandom),
    **{name: _draw(name) for name in _FUNCTIONS},
}
