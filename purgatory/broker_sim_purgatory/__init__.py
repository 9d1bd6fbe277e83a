"""Kafka's request purgatory and hierarchical timing wheel, as a library of its own.

Operations that cannot complete yet are parked under keys, completed by events on those keys, and
expired by a timer whose add and cancel cost O(1). Standard library only; thread-safe; time is
injected, so it can be virtual. See docs/how/purgatory.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from broker_sim_purgatory import _timing_wheel
from broker_sim_purgatory.clock import Clock, SystemClock, VirtualClock
from broker_sim_purgatory.delayed_operation import DelayedOperation
from broker_sim_purgatory.delayed_operation_purgatory import DelayedOperationPurgatory, PurgatoryFullError
from broker_sim_purgatory.executor import Executor, InlineExecutor, SingleThreadExecutor
from broker_sim_purgatory.key_set import KeySet
from broker_sim_purgatory.observer import PurgatoryObserver
from broker_sim_purgatory.pending_operation import PendingOperation
from broker_sim_purgatory.snapshots import ParkedOperation, PlacedTask, PurgatoryStatistics, TimerStatistics
from broker_sim_purgatory.system_timer import SystemTimer, Timer
from broker_sim_purgatory.timer_task import TimerTask
from broker_sim_purgatory.virtual_timer import VirtualTimer

if TYPE_CHECKING:
    from broker_sim_purgatory.awaitable import AwaitableOperation, wait_until
    from broker_sim_purgatory.loop_timer import LoopTimer

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
    "PurgatoryFullError",
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
    "AwaitableOperation": "broker_sim_purgatory.awaitable",
    "LoopTimer": "broker_sim_purgatory.loop_timer",
    "wait_until": "broker_sim_purgatory.awaitable",
}


def __getattr__(name: str) -> object:
    if name not in _NEEDS_ASYNCIO:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_NEEDS_ASYNCIO[name]), name)
    globals()[name] = value
    return value
