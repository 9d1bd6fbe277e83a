"""The machine's clocks, whatever a test puts in their place: freezegun, time-machine and patches of `time`.

The functions are those of a second copy of `time`, which is in no table of modules, so nobody can replace them.
"""

import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

_NS_PER_SECOND: Final = 1_000_000_000
_CLOCK_REALTIME: Final = 0


def _second_copy(name: str) -> ModuleType:
    """Return a new instance of a module that is written in C."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_time: Final = _second_copy("time")
_modules: Final = sys.modules

monotonic_ns: Callable[[], int] = _time.perf_counter_ns
"""Nanoseconds of a clock that never goes back: the one that time-machine leaves alone."""


def wall_clock_ns() -> int:
    """Return the nanoseconds since 1970."""
    ns: int = _library_clock()() if "time_machine" in _modules else _time.time_ns()
    return ns


@cache
def _library_clock() -> Callable[[], int]:
    """Return the wall clock of the C library: time-machine replaces the code of the functions in `time`, in all copies.

    It takes half a microsecond longer. Windows does not have it.
    """
    import ctypes  # noqa: PLC0415 - slow to import, seldom needed

    class TimeSpec(ctypes.Structure):
        _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    try:
        clock_gettime: Any = ctypes.CDLL(None).clock_gettime
    except (AttributeError, OSError, TypeError):
        read_ns: Callable[[], int] = _time.time_ns
        return read_ns

    def read_library_ns() -> int:
        present = TimeSpec()
        clock_gettime(_CLOCK_REALTIME, ctypes.byref(present))
        return int(present.seconds) * _NS_PER_SECOND + int(present.nanoseconds)

    return read_library_ns
