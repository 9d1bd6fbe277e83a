"""`datetime.now` and `utcnow` in virtual time; `today` asks `time.time` and needs nothing.

The type is written in C and does not let its methods be set, and a subclass in its place would miss
all who said `from datetime import datetime` before. So the methods are put into the type's own
dictionary, which CPython allows to reach; every name of the type then sees them.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import gc
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.virtual.core.clock import NS_PER_US
from broker_sim.runtime.virtual.loop import current_loop

if TYPE_CHECKING:
    from collections.abc import Callable


def replace_member(kind: type, name: str, member: object) -> object:
    """Put a member into a type written in C; return the one that was there."""
    members = gc.get_referents(kind.__dict__)[0]
    before: object = members[name]
    members[name] = member
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
    return before


def _present_s() -> float | None:
    """Return the virtual wall clock in seconds, to the microsecond; None in real time."""
    loop = current_loop()
    return None if loop is None else loop.wall_clock_ns() // NS_PER_US / 1_000_000


def _now() -> Callable[..., dt.datetime]:
    real = dt.datetime.__dict__["now"]

    def now(cls: type[dt.datetime], tz: dt.tzinfo | None = None) -> dt.datetime:
        present_s = _present_s()
        if present_s is None:
            reading: dt.datetime = real.__get__(None, cls)(tz)
            return reading
        return cls.fromtimestamp(present_s, tz)

    return now


def _utcnow() -> Callable[..., dt.datetime]:
    real = dt.datetime.__dict__["utcnow"]

    def utcnow(cls: type[dt.datetime]) -> dt.datetime:
        present_s = _present_s()
        if present_s is None:
            reading: dt.datetime = real.__get__(None, cls)()
            return reading
        return cls.fromtimestamp(present_s, dt.UTC).replace(tzinfo=None)

    return utcnow


REPLACEMENTS: dict[str, Any] = {"now": classmethod(_now()), "utcnow": classmethod(_utcnow())}
"""Replaced methods of `datetime.datetime`, by name."""
