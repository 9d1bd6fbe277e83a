"""The snapshots of the operations that wait in a purgatory's timer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_purgatory.snapshots import ParkedOperation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim_purgatory.delayed_operation import DelayedOperation
    from broker_sim_purgatory.snapshots import PlacedTask


def parked_operations(
    operations: Iterable[tuple[DelayedOperation, PlacedTask]],
    watch_lists: Iterable[tuple[object, Iterable[DelayedOperation], int]],
    now_ms: int,
) -> list[ParkedOperation]:
    """Return snapshots of the operations at `now_ms`, by deadline."""
    keys: dict[int, list[object]] = {}
    for key, watched, _ in watch_lists:
        for operation in watched:
            keys.setdefault(id(operation), []).append(key)
    parked = [
        ParkedOperation(
            operation_id=operation.operation_id,
            operation=type(operation).__name__,
            keys=tuple(keys.get(id(operation), ())),
            delay_ms=operation.delay_ms,
            age_ms=max(now_ms - operation.created_ms, 0),
            time_left_ms=max(operation.expiration_ms - now_ms, 0),
            wheel_level=placed.wheel_level,
            wheel_bucket=placed.wheel_bucket,
        )
        for operation, placed in operations
    ]
    parked.sort(key=lambda each: (each.time_left_ms, each.operation_id))
    return parked
