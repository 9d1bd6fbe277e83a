"""Snapshots of a timer's wheels and of a purgatory's watch lists; see docs/purgatory.md."""

from broker_sim_purgatory.inspect import (
    BucketSnapshot,
    PurgatorySnapshot,
    TaskSnapshot,
    TimerSnapshot,
    WatchListSnapshot,
    WheelSnapshot,
    inspect_purgatory,
    inspect_timer,
)

__all__ = [
    "BucketSnapshot",
    "PurgatorySnapshot",
    "TaskSnapshot",
    "TimerSnapshot",
    "WatchListSnapshot",
    "WheelSnapshot",
    "inspect_purgatory",
    "inspect_timer",
]
