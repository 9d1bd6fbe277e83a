"""Member sessions: one delayed operation per member, restarted by each of its requests.

Mirrors the heartbeat timers of `GroupMetadataManager`, and `DelayedHeartbeat` of Kafka 3. If an observer reports each
wait, a request completes the operation instead of postponing it, and a new one is parked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.group.delayed_timeout import DelayedTimeout, MemberKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import DelayedOperationPurgatory

    from broker_sim.group.classic.classic_group import ClassicGroup
    from broker_sim.group.classic.classic_member import ClassicMember

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""Maximum wait of a first join, during which a disconnected client is not noticed."""


class MemberSessions:
    """Parks and completes the heartbeat operations of all classic groups of a shard.

    `on_timeout(group, member_id)` is called when a session expires.
    """

    __slots__ = ("_on_timeout", "_purgatory")

    def __init__(
        self, purgatory: DelayedOperationPurgatory[DelayedTimeout], on_timeout: Callable[[ClassicGroup, str], object]
    ) -> None:
        self._purgatory = purgatory
        self._on_timeout = on_timeout

    def begin(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None) -> None:
        """Start or restart the member's session; `timeout_ms` defaults to its session timeout.

        A parked operation is postponed instead of being replaced.
        """
        before = member.heartbeat
        if timeout_ms is None:
            timeout_ms = member.session_timeout_ms
        if before is None or not self._purgatory.postpone(before, timeout_ms):
            member.heartbeat = self._park(group, member.member_id, timeout_ms, member.client_id, before)

    def begin_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int, client_id: str | None) -> None:
        """Start the timeout within which a pending member must join."""
        group.pending_join_members[member_id] = self._park(group, member_id, timeout_ms, client_id, None)

    def begin_first(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Start the session of a member whose first join is parked, reusing its pending operation."""
        member.heartbeat = group.pending_join_members.pop(member.member_id, None)
        self.begin(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)

    def end(self, group: ClassicGroup, member: ClassicMember) -> None:
        """End the session of a member that has left or was removed."""
        if member.heartbeat is not None:
            self._satisfy(group, member.member_id, member.heartbeat)
            member.heartbeat = None

    def end_pending(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a pending member that has joined, left or been rejected."""
        heartbeat = group.pending_join_members.pop(member_id, None)
        if heartbeat is not None:
            self._satisfy(group, member_id, heartbeat)

    def end_all(self, group: ClassicGroup) -> None:
        """End all sessions of a group that is being dropped."""
        for member in group.members.values():
            self.end(group, member)
        for member_id in list(group.pending_join_members):
            self.end_pending(group, member_id)

    def _park(
        self,
        group: ClassicGroup,
        member_id: str,
        timeout_ms: int,
        client_id: str | None,
        before: DelayedTimeout | None,
    ) -> DelayedTimeout:
        if before is not None:
            self._satisfy(group, member_id, before)
        heartbeat = DelayedTimeout("Heartbeat", timeout_ms, lambda: self._on_timeout(group, member_id), client_id)
        self._purgatory.try_complete_else_watch(heartbeat, [MemberKey(group.group_id, member_id)])
        return heartbeat

    def _satisfy(self, group: ClassicGroup, member_id: str, heartbeat: DelayedTimeout) -> None:
        heartbeat.is_satisfied = True
        self._purgatory.check_and_complete(MemberKey(group.group_id, member_id))
