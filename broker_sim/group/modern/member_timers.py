"""The timers of members: their sessions and rebalance timeouts.

Mirrors the timers that `GroupMetadataManager` schedules for members. Each is a delayed operation: sessions in
the purgatory "Heartbeat", the others in "Rebalance", keyed by the member or, for all its members, the group.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from broker_sim.group.delayed_timeout import DelayedTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.group.delayed_timeout import GroupKey, MemberKey

RETRY_MS: Final = 500
"""Delay before retrying a member timeout whose records could not be written."""


class Wait(Enum):
    """The event that a timer waits for."""

    SESSION = "session"
    """The member's next heartbeat."""
    REVOCATION = "revocation"
    """The member's revocation of partitions or tasks."""
    JOIN = "join"
    """The JoinGroup of a classic member that was told to rejoin."""
    SYNC = "sync"
    """The SyncGroup of a classic member that has joined."""
    FIRST_TARGET = "first target"
    """More members of a new streams group before its first assignment; one timer per group."""


class MemberTimers:
    """The running timers of a shard's members; `api` is the API of the members' heartbeats."""

    __slots__ = ("_api", "_purgatories", "_running")

    def __init__(self, broker: BrokerContext, api: str) -> None:
        self._api = api
        rebalance = broker.purgatory("Rebalance")
        self._purgatories = dict.fromkeys(Wait, rebalance) | {Wait.SESSION: broker.purgatory("Heartbeat")}
        self._running: dict[tuple[Wait, MemberKey | GroupKey], DelayedTimeout] = {}

    def begin(
        self,
        wait: Wait,
        key: MemberKey | GroupKey,
        delay_ms: int,
        on_timeout: Callable[[], object],
        client_id: str | None = None,
    ) -> None:
        """Start the timer, or restart it; `on_timeout()` is called when it expires."""
        self.end(wait, key)

        def expired() -> None:
            del self._running[wait, key]
            on_timeout()

        operation = DelayedTimeout(self._api, delay_ms, expired, client_id)
        self._running[wait, key] = operation
        self._purgatories[wait].try_complete_else_watch(operation, [key])

    def keep_alive(self, key: MemberKey, delay_ms: int, on_timeout: Callable[[], object], client_id: str) -> None:
        """Start the member's session timer, or postpone the running one if it has the same delay."""
        running = self._running.get((Wait.SESSION, key))
        if running is None or running.delay_ms != delay_ms or not self._purgatories[Wait.SESSION].postpone(running):
            self.begin(Wait.SESSION, key, delay_ms, on_timeout, client_id)

    def is_running(self, wait: Wait, key: MemberKey | GroupKey) -> bool:
        """Return whether the timer is running."""
        return (wait, key) in self._running

    def end(self, wait: Wait, key: MemberKey | GroupKey) -> None:
        """Cancel the timer, if it is running."""
        operation = self._running.pop((wait, key), None)
        if operation is not None:
            operation.is_satisfied = True
            self._purgatories[wait].check_and_complete(key)

    def end_all(self, key: MemberKey) -> None:
        """Cancel all timers of a member."""
        for wait in Wait:
            self.end(wait, key)
