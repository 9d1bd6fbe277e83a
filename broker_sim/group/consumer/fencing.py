"""How members leave a group of the consumer protocol, by themselves or because a time of theirs is over.

Mirrors `consumerGroupFenceMembers` and the session timeouts of `GroupMetadataManager`. A group in which
only members of the classic protocol are left becomes a classic one, if it may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError
from broker_sim.group.consumer import records
from broker_sim.group.consumer.consumer_group import ConsumerGroup
from broker_sim.group.keys import MemberKey
from broker_sim.group.modern.member_timers import RETRY_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.errors import ErrorCode
    from broker_sim.group.consumer.conversions import OnSettled
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.consumer.shard_parts import ShardParts
    from broker_sim.group.records import GroupRecord

R = TypeVar("R")


class Fencing:
    """Removes members of a shard's groups, and times their sessions."""

    def __init__(self, parts: ShardParts) -> None:
        self._parts = parts

    def fence(
        self, group: ConsumerGroup, members: Sequence[ConsumerMember], response: R, on_settled: OnSettled = None
    ) -> Result[R]:
        """Remove the members; their times end when the leader has the records.

        Raises `ApiError` GROUP_ID_NOT_FOUND if the group would become a classic one and cannot.
        """
        if not members:
            return Result(response, on_settled=on_settled)
        if self._parts.conversions.must_downgrade(group, members):
            return self._parts.conversions.downgrade_without(group, members, response, on_settled)

        def appended() -> None:
            for member in members:
                self._parts.timers.end_all(MemberKey(group.group_id, member.member_id))

        records_of_removal = self._removal(group, members)
        return Result(response, records_of_removal, on_appended=appended, on_settled=on_settled)

    def _removal(self, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> list[GroupRecord]:
        """Return the records that remove the members."""
        group_id = group.group_id
        written = []
        for member in members:
            written += records.member_tombstones(group_id, member.member_id)
        leaving: dict[str, int] = {}
        for member in members:
            if member.subscribed_topic_regex:
                regex = member.subscribed_topic_regex
                leaving[regex] = leaving.get(regex, 0) + 1
        unused = [regex for regex, count in leaving.items() if group.regexes.get(regex) == count]
        written += [records.regex_tombstone(group_id, regex) for regex in unused]
        topics = group.topics_without(members, unused)
        metadata_hash = self._parts.hashes.of(topics, self._parts.environment.image())
        written.append(records.group_epoch(group_id, group.group_epoch + 1, metadata_hash))
        return written

    def keep_alive(self, group_id: str, member: ConsumerMember, timeout_ms: int | None = None) -> None:
        """Begin the member's session anew; unless told it has the group's session timeout."""
        member_id = member.member_id
        key = MemberKey(group_id, member_id)
        if timeout_ms is None:
            timeout_ms = self._parts.settings.session_timeout_ms(group_id)
        self._parts.timers.keep_alive(key, timeout_ms, lambda: self.expire(group_id, member_id), member.client_id)

    def expire(self, group_id: str, member_id: str) -> None:
        """Fence a member whose time is over, if it is still there and this is still the coordinator."""
        self._parts.runtime.perform(lambda: self._expired(group_id, member_id))

    def _expired(self, group_id: str, member_id: str) -> Result[None]:
        group = self._parts.groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or member_id not in group.members:
            return Result()
        member = group.members[member_id]

        def settled(error_code: ErrorCode) -> None:
            # Nobody waits for it, so it is tried again.
            if error_code and self._parts.runtime.is_active and member_id in group.members:
                self.keep_alive(group_id, member, RETRY_MS)

        try:
            return self.fence(group, [member], None, settled)
        except ApiError as error:
            self._parts.log.info("could not fence", group=group_id, member=member_id, reason=error.error_message)
            return Result()

    def expire_in_epoch(self, group_id: str, member_id: str, member_epoch: int) -> None:
        """Fence a member that has not revoked in time: it is still in the same epoch."""
        group = self._parts.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            member = group.members.get(member_id)
            if member is not None and member.member_epoch == member_epoch:
                self.expire(group_id, member_id)
