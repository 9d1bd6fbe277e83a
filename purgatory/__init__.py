"""Kafka's request purgatory and hierarchical timing wheel, as a library of its own.

Operations that cannot complete yet are parked under keys, completed by events on those keys, and
expired by a timer whose add and cancel cost O(1). Standard library only; thread-safe; time is
injected, so it can be virtual. See docs/purgatory.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from purgatory import timing_wheel as _timing_wheel
from purgatory.clock import Clock, SystemClock, VirtualClock
from purgatory.delay_queue import DelayQueue
from purgatory.delayed_operation import DelayedOperation
from purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from purgatory.executor import Executor, InlineExecutor, SingleThreadExecutor
from purgatory.expired_operation_reaper import ExpiredOperationReaper, Reaper
from purgatory.observer import PurgatoryObserver
from purgatory.pending_operation import PendingOperation
from purgatory.snapshots import ParkedOperation, PlacedTask, PurgatoryStatistics, TimerStatistics
from purgatory.system_timer import SystemTimer, Timer
from purgatory.timer_task import TaskCounter, TimerTask, TimerTaskEntry
from purgatory.timer_task_list import TimerTaskList
from purgatory.timing_wheel import TimingWheel
from purgatory.virtual_timer import VirtualTimer
from purgatory.watchers import WatcherList

if TYPE_CHECKING:
    from purgatory.awaitable import AwaitableOperation, wait_until
    from purgatory.loop_timer import LoopTimer
    from purgatory.virtual_loop import VirtualLoop, run_virtual

__all__ = [
    "AwaitableOperation",
    "Clock",
    "DelayQueue",
    "DelayedOperation",
    "DelayedOperationPurgatory",
    "Executor",
    "ExpiredOperationReaper",
    "InlineExecutor",
    "LoopTimer",
    "ParkedOperation",
    "PendingOperation",
    "PlacedTask",
    "PurgatoryObserver",
    "PurgatoryStatistics",
    "Reaper",
    "SingleThreadExecutor",
    "SystemClock",
    "SystemTimer",
    "TaskCounter",
    "Timer",
    "TimerStatistics",
    "TimerTask",
    "TimerTaskEntry",
    "TimerTaskList",
    "TimingWheel",
    "VirtualClock",
    "VirtualLoop",
    "VirtualTimer",
    "WatcherList",
    "compiled",
    "run_virtual",
    "wait_until",
]

compiled: bool = not str(_timing_wheel.__file__).endswith(".py")
"""Whether the hot modules are native; see hatch_build.py. It makes no difference but in speed."""

# What needs asyncio is imported when it is asked for: threads should not pay for it.
_NEEDS_ASYNCIO = {
    "AwaitableOperation": "purgatory.awaitable",
    "LoopTimer": "purgatory.loop_timer",
    "VirtualLoop": "purgatory.virtual_loop",
    "run_virtual": "purgatory.virtual_loop",
    "wait_until": "purgatory.awaitable",
}


def __getattr__(name: str) -> object:
    if name not in _NEEDS_ASYNCIO:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_NEEDS_ASYNCIO[name]), name)
    globals()[name] = value
    return value
