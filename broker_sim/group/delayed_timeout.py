"""Purgatory keys of group operations, and a delayed operation that only serves as a timer.

The keys mirror `DelayedOperationKey` of Kafka 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.runtime.delayed_request import DelayedRequest

if TYPE_CHECKING:
    from collections.abc import Callable


class GroupKey(NamedTuple):
    """Key of operations of a whole group, such as joins and syncs."""

    group_id: str

    def __str__(self) -> str:
        return self.group_id


class MemberKey(NamedTuple):
    """Key of operations of one member, such as its heartbeat."""

    group_id: str
    member_id: str

    def __str__(self) -> str:
        return f"{self.group_id}-{self.member_id}"


class DelayedTimeout(DelayedRequest):
    """Calls `on_timeout()` after its delay, unless `is_satisfied` is set and its key checked before.

    Mirrors `DelayedHeartbeat` of Kafka 3, and the timers that Kafka's coordinator has for members since. `api` is the
    request that the member must send in time.
    """

    __slots__ = ("_on_timeout", "api", "is_satisfied")

    def __init__(self, api: str, delay_ms: int, on_timeout: Callable[[], object], client_id: str | None) -> None:
        super().__init__(delay_ms, client_id)
        self.api = api
        self._on_timeout = on_timeout
        self.is_satisfied = False

    def try_complete(self) -> bool:
        """Complete if `is_satisfied` is set."""
        return self.is_satisfied and self.force_complete()

    def on_expiration(self) -> None:
        """Call `on_timeout`."""
        self._on_timeout()

    def on_complete(self) -> None:
        """Do nothing: completion only ends the wait."""
