"""How members leave a streams group, by themselves or because a time of theirs is over.

Mirrors `streamsGroupFenceMember` and the timeouts of `GroupMetadataManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker_sim.coordinator.result import Result
from broker_sim.group.keys import MemberKey
from broker_sim.group.modern.member_timers import RETRY_MS, Wait
from broker_sim.group.streams import records
from broker_sim.group.streams.streams_group import StreamsGroup

if TYPE_CHECKING:
    from broker_sim.errors import ErrorCode
    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.group.streams.shard_parts import ShardParts

R = TypeVar("R")


class Fencing:
    """Removes members of a shard's streams groups, and times them."""

    def __init__(self, parts: ShardParts) -> None:
        self._parts = parts

    def fence(self, group: StreamsGroup, member: StreamsMember, response: R) -> Result[R]:
        """Remove the member; its times end when the leader has the records."""
        group_id = group.group_id
        written = records.member_tombstones(group_id, member.member_id)
        written.append(
            records.group_metadata(
                group_id,
                group.group_epoch + 1,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.last_assignment_configs,
            )
        )
        key = MemberKey(group_id, member.member_id)
        return Result(response, written, on_appended=lambda: self._parts.timers.end_all(key))

    def keep_alive(self, group_id: str, member: StreamsMember, timeout_ms: int | None = None) -> None:
        """Begin the member's session anew; unless told it has the group's session timeout."""
        if timeout_ms is None:
            timeout_ms = self._parts.settings.session_timeout_ms(group_id)
        member_id = member.member_id
        self._parts.timers.keep_alive(
            MemberKey(group_id, member_id), timeout_ms, lambda: self._expire(group_id, member_id), member.client_id
        )

    def time_revocation(self, group_id: str, member: StreamsMember) -> None:
        """Give the member its rebalance timeout to give tasks up; it is fenced if its epoch is the same then."""
        member_id, epoch = member.member_id, member.member_epoch
        self._parts.timers.begin(
            Wait.REVOCATION,
            MemberKey(group_id, member_id),
            member.rebalance_timeout_ms,
            lambda: self._expire(group_id, member_id, epoch),
            member.client_id,
        )

    def _expire(self, group_id: str, member_id: str, epoch: int | None = None) -> None:
        """Fence a member whose time is over, if it is still there, and in that epoch unless that is None."""
        self._parts.runtime.perform(lambda: self._expired(group_id, member_id, epoch))

    def _expired(self, group_id: str, member_id: str, epoch: int | None) -> Result[None]:
        group = self._parts.groups.get(group_id)
        if not isinstance(group, StreamsGroup) or member_id not in group.members:
            return Result()
        member = group.members[member_id]
        if epoch is not None and member.member_epoch != epoch:
            return Result()

        def settled(error_code: ErrorCode) -> None:
            # Nobody waits for it, so it is tried again.
            if error_code and self._parts.runtime.is_active and member_id in group.members:
                self.keep_alive(group_id, member, RETRY_MS)

        fenced: Result[None] = self.fence(group, member, None)
        fenced.on_settled = settled
        return fenced
