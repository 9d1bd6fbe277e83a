"""Kafka's request purgatory and hierarchical timing wheel, as a library of its own.

Operations that cannot complete yet are parked under keys, completed by events on those keys, and
expired by a timer whose add and cancel cost O(1). Standard library only; thread-safe; time is
injected, so it can be virtual. See docs/purgatory.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from purgatory import _timing_wheel
from purgatory.clock import Clock, SystemClock, VirtualClock
from purgatory.delayed_operation import DelayedOperation
from purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from purgatory.executor import Executor, InlineExecutor, SingleThreadExecutor
from purgatory.key_set import KeySet
from purgatory.observer import PurgatoryObserver
from purgatory.pending_operation import PendingOperation
from purgatory.snapshots import ParkedOperation, PlacedTask, PurgatoryStatistics, TimerStatistics
from purgatory.system_timer import SystemTimer, Timer
from purgatory.timer_task import TimerTask
from purgatory.virtual_timer import VirtualTimer

if TYPE_CHECKING:
    from purgatory.awaitable import AwaitableOperation, wait_until
    from purgatory.loop_timer import LoopTimer

__all__ = [
    "AwaitableOperation",
    "Clock",
    "DelayedOperation",
    "DelayedOperationPurgatory",
    "Executor",
    "InlineExecutor",
    "KeySet",
    "LoopTimer",
    "ParkedOperation",
    "PendingOperation",
    "PlacedTask",
    "PurgatoryObserver",
    "PurgatoryStatistics",
    "SingleThreadExecutor",
    "SystemClock",
    "SystemTimer",
    "Timer",
    "TimerStatistics",
    "TimerTask",
    "VirtualClock",
    "VirtualTimer",
    "compiled",
    "wait_until",
]

compiled: bool = not str(_timing_wheel.__file__).endswith(".py")
"""Whether the hot modules are native; see hatch_build.py. Both builds behave the same; only the
speed differs."""

# What needs asyncio is imported on first use, so that programs without it start faster.
_NEEDS_ASYNCIO = {
    "AwaitableOperation": "purgatory.awaitable",
    "LoopTimer": "purgatory.loop_timer",
    "wait_until": "purgatory.awaitable",
}


def __getattr__(name: str) -> object:
    if name not in _NEEDS_ASYNCIO:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_NEEDS_ASYNCIO[name]), name)
    globals()[name] = value
    return value
