"""The clocks of `time` and `datetime`: virtual in the code of a virtual loop, real everywhere else.

`datetime.today` calls `time.time` and needs no replacement.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import gc
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.virtual.core.clock import NS_PER_SECOND, NS_PER_US
from broker_sim.runtime.virtual.loop import current_loop
from broker_sim.runtime.virtual.threads import current_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.runtime.virtual.loop import VirtualEventLoop


def _now_ns(loop: VirtualEventLoop) -> int:
    return loop.clock.now_ns


def _wall_ns(loop: VirtualEventLoop) -> int:
    return loop.wall_clock_ns()


_beneath: dict[str, Callable[..., Any]] = dict(vars(time))
"""Functions for code in real time, by name: those of `time`, or another tool's replacements."""


def look_beneath() -> None:
    """Remember the current functions of `time`; to be called while our replacements are not installed."""
    _beneath.update(vars(time))


def _clock(
    name: str, read_ns: Callable[[VirtualEventLoop], int], *, in_seconds: bool, beneath: Mapping[str, Any] = _beneath
) -> Callable[[], Any]:
    """Return the replacement of a clock of `time`, in seconds or nanoseconds."""

    def clock() -> float:
        loop = current_loop()
        if loop is None:
            reading: float = beneath[name]()
            return reading
        return read_ns(loop) / NS_PER_SECOND if in_seconds else read_ns(loop)

    return clock


def monotonic() -> Callable[[], Any]:
    """Return a replacement of `time.monotonic`, for a module that has imported the real one."""
    return _clock("monotonic", _now_ns, in_seconds=True, beneath={"monotonic": time.monotonic})


def real_time() -> Any:
    """Return a substitute for the `time` module, for a module that waits for other OS processes.

    They run in real time: virtual time would pass too fast for them.
    """
    return SimpleNamespace(sleep=_real_sleep)


def _clock_by_id(name: str, *, in_seconds: bool) -> Callable[[int], Any]:
    """Return the replacement of `clock_gettime` or `clock_gettime_ns`; CPU clocks stay real."""
    wall_clocks = {getattr(time, "CLOCK_REALTIME", None), getattr(time, "CLOCK_TAI", None)}
    names = ("CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME")
    clocks = {getattr(time, name, None) for name in names}

    def clock_gettime(clk_id: int, /) -> float:
        loop = current_loop()
        if loop is None or clk_id not in clocks | wall_clocks:
            reading: float = _beneath[name](clk_id)
            return reading
        now_ns = _wall_ns(loop) if clk_id in wall_clocks else _now_ns(loop)
        return now_ns / NS_PER_SECOND if in_seconds else now_ns

    return clock_gettime


def _show_seconds(name: str) -> Callable[..., Any]:
    """Return the replacement of a function that formats a given time or, without an argument, the current one."""

    def show(seconds: float | None = None, /) -> Any:
        loop = current_loop()
        if loop is not None and seconds is None:
            seconds = _wall_ns(loop) / NS_PER_SECOND
        return _beneath[name](seconds)

    return show


def _show_fields(name: str) -> Callable[..., Any]:
    """Return the replacement of a function whose last argument is a `struct_time`, by default the current time."""
    count = 2 if name == "strftime" else 1

    def show(*args: Any) -> Any:
        loop = current_loop()
        if loop is not None and len(args) < count:
            args = (*args, _real_localtime(_wall_ns(loop) / NS_PER_SECOND))
        return _beneath[name](*args)

    return show


def _sleep(seconds: float, /) -> None:
    """Sleep: a worker thread of a virtual loop sleeps alone, a coroutine blocks the whole loop."""
    loop = current_loop()
    if loop is None:
        _real_sleep(seconds)
        return
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    worker = current_worker()
    if worker is None:
        loop.sleep_blocking(seconds)
    else:
        worker.sleep(seconds)


def replace_member(kind: type, name: str, member: object) -> object:
    """Replace a member of a type written in C; return the old one.

    Methods of such a type cannot be assigned, and a subclass in its place would not reach modules that have already
    run `from datetime import datetime`. CPython gives access to the type's own dictionary, which can be changed; the
    change is visible everywhere.
    """
    members = gc.get_referents(kind.__dict__)[0]
    before: object = members[name]
    members[name] = member
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
    return before


def _present_s() -> float | None:
    """Return the virtual wall clock in seconds, with microseconds; None in real time."""
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


_real_sleep = time.sleep
_real_localtime = time.localtime

REPLACEMENTS: dict[str, Callable[..., Any]] = {
    "time": _clock("time", _wall_ns, in_seconds=True),
    "time_ns": _clock("time_ns", _wall_ns, in_seconds=False),
    "monotonic": _clock("monotonic", _now_ns, in_seconds=True),
    "monotonic_ns": _clock("monotonic_ns", _now_ns, in_seconds=False),
    "perf_counter": _clock("perf_counter", _now_ns, in_seconds=True),
    "perf_counter_ns": _clock("perf_counter_ns", _now_ns, in_seconds=False),
    "sleep": _sleep,
    "gmtime": _show_seconds("gmtime"),
    "localtime": _show_seconds("localtime"),
    "ctime": _show_seconds("ctime"),
    "asctime": _show_fields("asctime"),
    "strftime": _show_fields("strftime"),
}
"""Replaced functions of `time`, by name. CPU clocks stay real."""
if hasattr(time, "clock_gettime"):
    REPLACEMENTS["clock_gettime"] = _clock_by_id("clock_gettime", in_seconds=True)
    REPLACEMENTS["clock_gettime_ns"] = _clock_by_id("clock_gettime_ns", in_seconds=False)

DATETIME_REPLACEMENTS: dict[str, Any] = {"now": classmethod(_now()), "utcnow": classmethod(_utcnow())}
"""Replaced methods of `datetime.datetime`, by name."""
