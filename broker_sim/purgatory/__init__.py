"""The purgatory library, under the name by which users import it; see docs/purgatory.md.

A wheel ships the package `purgatory` under another name, because PyPI has an unrelated one of that
name (docs/decisions.md). This name is the same in the repository and in a wheel.
"""

from typing import TYPE_CHECKING

import broker_sim_purgatory as purgatory
from broker_sim_purgatory import (
    Clock,
    DelayedOperation,
    DelayedOperationPurgatory,
    Executor,
    InlineExecutor,
    ParkedOperation,
    PendingOperation,
    PlacedTask,
    PurgatoryObserver,
    PurgatoryStatistics,
    SingleThreadExecutor,
    SystemClock,
    SystemTimer,
    Timer,
    TimerStatistics,
    TimerTask,
    VirtualClock,
    VirtualTimer,
    compiled,
)

if TYPE_CHECKING:
    from broker_sim_purgatory import AwaitableOperation, LoopTimer, wait_until

__all__ = [
    "AwaitableOperation",
    "Clock",
    "DelayedOperation",
    "DelayedOperationPurgatory",
    "Executor",
    "InlineExecutor",
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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(purgatory, name)  # it imports what needs asyncio on first use
    globals()[name] = value
    return value
