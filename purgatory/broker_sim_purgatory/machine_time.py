"""The machine's clocks, unaffected by tests that replace them with freezegun, time-machine or patches of `time`.

The functions come from a second copy of `time` that is not in `sys.modules`, so nothing can replace them.
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
"""Nanoseconds of a clock that never goes back; time-machine leaves it alone."""


def wall_clock_ns() -> int:
    """Return the nanoseconds since 1970."""
    ns: int = _library_clock()() if "time_machine" in _modules else _time.time_ns()
    return ns


@cache
def _library_clock() -> Callable[[], int]:
    """Return the wall clock of the C library, because time-machine replaces the functions of all copies of `time`.

    It takes half a microsecond longer. On Windows, which lacks it, `time.time_ns` is returned.
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
