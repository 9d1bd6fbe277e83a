"""A group that waits until its members ask for their assignments; mirrors `DelayedSync` of Kafka 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.runtime.delayed_request import DelayedRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.group.classic.classic_group import ClassicGroup


class DelayedSync(DelayedRequest):
    """Waits until each member of a generation has sent a SyncGroup, or until the next rebalance.

    After the rebalance timeout `on_timeout(group, generation_id)` removes those who have not.
    """

    __slots__ = ("_generation_id", "_group", "_on_timeout")

    api = "SyncGroup"

    def __init__(self, delay_ms: int, group: ClassicGroup, on_timeout: Callable[[ClassicGroup, int], object]) -> None:
        super().__init__(delay_ms)
        self._group = group
        self._generation_id = group.generation_id
        self._on_timeout = on_timeout

    def try_complete(self) -> bool:
        """Complete if all have synced or it is too late to."""
        group = self._group
        is_over = group.generation_id != self._generation_id or not group.pending_sync_members
        return is_over and self.force_complete()

    def on_expiration(self) -> None:
        """Remove those who have not synced."""
        self._on_timeout(self._group, self._generation_id)

    def on_complete(self) -> None:
        """Do nothing: members are answered when the assignment is there."""
