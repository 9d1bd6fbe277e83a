"""A throttled connection; mirrors `ThrottledChannel`.

Kafka keeps these in a `DelayQueue` for each kind of quota, which a thread reads (`ThrottledChannelReaper`).
Deliberate difference: here they are delayed operations in one purgatory, `ThrottledChannel`, so that
they are seen where everything that waits is seen. Nothing completes one before its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.runtime.delayed_request import DelayedRequest

if TYPE_CHECKING:
    from collections.abc import Callable


class ThrottledChannel(DelayedRequest):
    """Keeps one connection muted for `delay_ms`."""

    __slots__ = ("_end_throttling",)

    api = "ThrottledChannel"

    def __init__(self, delay_ms: int, end_throttling: Callable[[], object], client_id: str | None = None) -> None:
        super().__init__(delay_ms, client_id)
        self._end_throttling = end_throttling

    def try_complete(self) -> bool:
        """Return False: it only expires."""
        return False

    def on_complete(self) -> None:
        """Unmute the connection."""
        self._end_throttling()

    def on_expiration(self) -> None:
        """Do nothing: `on_complete` has unmuted the connection."""
