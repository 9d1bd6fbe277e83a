"""The timers of members: their sessions, and the times they have for a rebalance.

Mirrors the timers that `GroupMetadataManager` schedules for members of groups. Each is a delayed
operation that does nothing but expire: sessions in the purgatory "Heartbeat", the others in
"Rebalance", all keyed by the member, or by the group for all its members.
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
    """The events that the coordinator waits for."""

    SESSION = "session"
    """The member's next heartbeat."""
    REVOCATION = "revocation"
    """The member gives up what is revoked."""
    JOIN = "join"
    """A member of the classic protocol joins again."""
    SYNC = "sync"
    """A member of the classic protocol asks for its assignment."""
    FIRST_TARGET = "first target"
    """More members of a new streams group, before tasks are assigned; the timer is the group's."""


class DelayedMemberTimeout(DelayedTimeout):
    """Expires unless the member does in time what is waited for; `api` is the API of its heartbeats."""

    __slots__ = ("api",)

    def __init__(self, api: str, delay_ms: int, on_timeout: Callable[[], object], client_id: str | None) -> None:
        super().__init__(delay_ms, on_timeout, client_id)
        self.api = api


class MemberTimers:
    """The running times of the members of a shard's groups."""

    __slots__ = ("_api", "_purgatories", "_running")

    def __init__(self, broker: BrokerContext, api: str) -> None:
        self._api = api
        rebalance = broker.purgatory("Rebalance")
        self._purgatories = dict.fromkeys(Wait, rebalance) | {Wait.SESSION: broker.purgatory("Heartbeat")}
        self._running: dict[tuple[Wait, MemberKey | GroupKey], DelayedMemberTimeout] = {}

    def begin(
        self,
        wait: Wait,
        key: MemberKey | GroupKey,
        delay_ms: int,
        on_timeout: Callable[[], object],
        client_id: str | None = None,
    ) -> None:
        """Begin the time, anew if it is running; `on_timeout()` is called at its end."""
        self.end(wait, key)

        def expired() -> None:
            del self._running[wait, key]
            on_timeout()

        operation = DelayedMemberTimeout(self._api, delay_ms, expired, client_id)
        self._running[wait, key] = operation
        self._purgatories[wait].try_complete_else_watch(operation, [key])

    def prolong(self, wait: Wait, key: MemberKey | GroupKey, delay_ms: int) -> bool:
        """Let a running time of that length begin anew; return whether there was one and it does."""
        operation = self._running.get((wait, key))
        return operation is not None and operation.delay_ms == delay_ms and self._purgatories[wait].postpone(operation)

    def keep_alive(self, key: MemberKey, delay_ms: int, on_timeout: Callable[[], object], client_id: str) -> None:
        """Begin the member's session anew; a running one of that length is prolonged."""
        if not self.prolong(Wait.SESSION, key, delay_ms):
            self.begin(Wait.SESSION, key, delay_ms, on_timeout, client_id)

    def is_running(self, wait: Wait, key: MemberKey | GroupKey) -> bool:
        """Return whether the time is running."""
        return (wait, key) in self._running

    def end(self, wait: Wait, key: MemberKey | GroupKey) -> None:
        """End the time without consequences, if it is running."""
        operation = self._running.pop((wait, key), None)
        if operation is not None:
            operation.is_satisfied = True
            self._purgatories[wait].check_and_complete(key)

    def end_all(self, key: MemberKey) -> None:
        """End all times of a member."""
        for wait in Wait:
            self.end(wait, key)
