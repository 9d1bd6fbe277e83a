"""A group that waits until its members have joined; mirrors `DelayedJoin` of Kafka 3.

Deliberate difference: since 4.0 Kafka keeps this wait in a timer of its coordinator, with the same
times. Here it is a delayed operation, as it was, so that it can be seen like every other wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from broker_sim.runtime.delayed_request import DelayedRequest

if TYPE_CHECKING:
    from broker_sim.group.classic.classic_group import ClassicGroup

REPEATED_AFTER_MS: Final = 500
"""As in Kafka, whose coordinator carries out again so late what failed in one of its timers."""


class JoinPhase(Protocol):
    """What follows when a group need not wait any longer."""

    def complete_join(self, group: ClassicGroup) -> None:
        """Begin the next generation with those who have joined."""

    def extend_initial_join(self, group: ClassicGroup, operation: InitialDelayedJoin) -> None:
        """Wait on if members have come meanwhile, else begin the generation."""


class DelayedJoin(DelayedRequest):
    """Waits until every known member has joined, at most for the rebalance timeout.

    `is_over` ends it before, whoever is missing.
    """

    __slots__ = ("_group", "_phase", "is_over")

    api = "JoinGroup"

    def __init__(self, delay_ms: int, group: ClassicGroup, phase: JoinPhase) -> None:
        super().__init__(delay_ms)
        self._group = group
        self._phase = phase
        self.is_over = False

    def try_complete(self) -> bool:
        """Complete once all have joined."""
        return (self.is_over or self._group.has_all_members_joined) and self.force_complete()

    def on_expiration(self) -> None:
        """Do nothing more: those who are missing are removed on completion."""

    def on_complete(self) -> None:
        """Begin the next generation, unless the group waits for something else by now."""
        if self._group.join_operation is self:
            self._phase.complete_join(self._group)


class InitialDelayedJoin(DelayedJoin):
    """Gives the first members of an empty group time to come; mirrors `InitialDelayedJoin`.

    It waits its whole delay, also when all known members have joined. If members have come
    meanwhile, another such wait follows, as long as `remaining_ms` of the rebalance timeout is left.
    """

    __slots__ = ("remaining_ms",)

    def __init__(self, delay_ms: int, remaining_ms: int, group: ClassicGroup, phase: JoinPhase) -> None:
        super().__init__(delay_ms, group, phase)
        self.remaining_ms = remaining_ms

    def try_complete(self) -> bool:
        """Complete only if it is over."""
        return self.is_over and self.force_complete()

    def on_complete(self) -> None:
        """Begin the next generation, or wait on."""
        if self._group.join_operation is not self:
            return
        if self.is_over:
            self._phase.complete_join(self._group)
        else:
            self._phase.extend_initial_join(self._group, self)


class RepeatedJoin(InitialDelayedJoin):
    """Ends the joining once more, of members who have no protocol in common."""

    __slots__ = ()

    def __init__(self, group: ClassicGroup, phase: JoinPhase) -> None:
        super().__init__(REPEATED_AFTER_MS, 0, group, phase)


def has_failed_since(group: ClassicGroup, waited_for: DelayedJoin | None) -> bool:
    """Whether the joining has ended without a protocol in common since the group had that operation."""
    operation = group.join_operation
    return isinstance(operation, RepeatedJoin) and operation is not waited_for
