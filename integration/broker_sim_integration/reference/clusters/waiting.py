"""Waiting for a condition outside this process, with a timeout."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from broker_sim_purgatory.clock import Clock, SystemClock

from broker_sim_integration.reference.errors import ReferenceClusterError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_SYSTEM_CLOCK = SystemClock()


def wait_until(
    condition: Callable[[], T | None],
    what: str,
    *,
    timeout_ms: int,
    interval_ms: int = 100,
    clock: Clock = _SYSTEM_CLOCK,
) -> T:
    """Return the first true result of `condition`, which is called every `interval_ms`.

    After `timeout_ms` raise `ReferenceClusterError`, with `what` as the name of the condition. An error of
    `condition` itself ends the wait. Blocks the calling thread.
    """
    deadline_ms = clock.deadline_ms(timeout_ms)
    pause = threading.Event()
    while True:
        result = condition()
        if result:
            return result
        if clock.now_ms() >= deadline_ms:
            raise ReferenceClusterError(f"not reached within {timeout_ms / 1000:g} s: {what}")
        pause.wait(interval_ms / 1000)
