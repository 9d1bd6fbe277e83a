"""Polling of a condition, with a timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.clients.stopwatch import Moment, now_ms, pause_ms

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_MS = 60_000
INTERVAL_MS = 20


class NotReachedError(RuntimeError):
    """The cluster did not reach the state that a scenario needs."""


def poll_until(condition: Callable[[], object], what: str, timeout_ms: float = TIMEOUT_MS) -> Moment:
    """Wait until `condition` is true; return the time at which this was seen.

    The begin of the returned time is that of the last check at which it was false. After `timeout_ms` raise
    `NotReachedError`, with `what` as the name of the condition.
    """
    began_ms = asked_ms = now_ms()
    deadline_ms = began_ms + timeout_ms
    while not condition():
        began_ms = asked_ms
        if now_ms() > deadline_ms:
            raise NotReachedError(f"not reached within {timeout_ms / 1000:g} s: {what}")
        pause_ms(INTERVAL_MS)
        asked_ms = now_ms()
    return Moment(now_ms(), began_ms=began_ms)
