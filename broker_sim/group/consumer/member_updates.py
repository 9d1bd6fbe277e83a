"""What a heartbeat changes: subscription, group epoch, target, and the member's next step.

Mirrors `GroupMetadataManager.consumerGroupHeartbeat`. One heartbeat does, in this order:
A. find the member, or make it
B. take over its subscription, and bump the group epoch if that or a topic has changed
C. compute a new target if the group epoch is ahead of it, at most once in the assignment interval
D. take the member's next step towards the target
All records of it are written in one batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer import records
from broker_sim.group.consumer.assignors import ASSIGNORS, AssignorError
from broker_sim.group.consumer.current_assignment import Reconciliation
from broker_sim.group.consumer.member import MemberState
from broker_sim.group.consumer.regexes import RegexChange
from broker_sim.group.consumer.subscription import subscribed_topics
from broker_sim.group.consumer.target_assignment import compute_target
from broker_sim.group.keys import MemberKey
from broker_sim.group.modern.counting import is_homogeneous
from broker_sim.group.modern.member_timers import Wait
from broker_sim.group.modern.topic_counts import topic_ids_of

if TYPE_CHECKING:
    from broker_sim.group.consumer.fencing import Fencing
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.consumer.member_change import MemberChange
    from broker_sim.group.consumer.regexes import Regexes
    from broker_sim.group.consumer.shard_parts import ShardParts
    from broker_sim.group.modern.assignment import Partitions


class MemberUpdates:
    """Steps B to D, for members of both protocols."""

    def __init__(self, parts: ShardParts, regexes: Regexes, fencing: Fencing) -> None:
        self._parts = parts
        self._regexes = regexes
        self._fencing = fencing

    def update(self, change: MemberChange) -> ConsumerMember:
        """Do B to D, and return the member after it.

        Raises `ApiError`: INVALID_REGULAR_EXPRESSION, FENCED_MEMBER_EPOCH, UNKNOWN_SERVER_ERROR.
        """
        changed, group_epoch, homogeneous = self.subscribe(change)
        target_epoch, target = self._target(change, group_epoch, homogeneous)
        return self.reconcile(change, target_epoch, target, changed)

    def subscribe(self, change: MemberChange) -> tuple[bool, int, bool]:
        """Do B. Returns whether the subscription has changed, the group epoch, and homogeneity."""
        group, member, updated = change.group, change.member, change.updated
        names_changed = False
        if updated != member:
            change.written.append(records.member_metadata(group.group_id, updated))
            names_changed = updated.subscribed_topic_names != member.subscribed_topic_names
        regex_change = self._regexes.update(change)
        # Members of the classic protocol never wait for an expression.
        resolved = regex_change is RegexChange.UPDATED_AND_RESOLVED or (
            updated.uses_classic_protocol and regex_change is not RegexChange.NONE
        )
        bump = names_changed or resolved
        group_epoch, homogeneous = group.group_epoch, group.is_homogeneous
        if bump or group.has_metadata_expired:
            group_epoch, homogeneous = self._look_at_topics(change, bump)
        return names_changed or regex_change is not RegexChange.NONE, group_epoch, homogeneous

    def _look_at_topics(self, change: MemberChange, bump: bool) -> tuple[int, bool]:
        """Bump the group epoch if asked to, or if a topic has changed."""
        group, member, updated = change.group, change.member, change.updated
        topics = group.next_topics(member, updated)
        metadata_hash = self._parts.hashes.of(topics, self._parts.environment.image())
        is_new = updated.member_id not in group.members and (group.static_member_id(updated.instance_id) is None)
        group_epoch = group.group_epoch
        if bump or metadata_hash != group.metadata_hash:
            group_epoch += 1
            change.written.append(records.group_epoch(group.group_id, group_epoch, metadata_hash))
            self._parts.environment.counters.consumer_group_rebalances += 1
        group.metadata_refreshed(group_epoch)
        if group.has_subscription_metadata_record:
            change.written.append(records.subscription_metadata_tombstone(group.group_id))
        regexes = group.next_regexes(member, updated)
        return group_epoch, is_homogeneous(regexes, topics, len(group.members) + is_new)

    def _target(self, change: MemberChange, group_epoch: int, homogeneous: bool) -> tuple[int, Partitions]:
        """Do C: return the epoch of the target, and the member's."""
        group, updated = change.group, change.updated
        now_ms = self._parts.environment.clock.wall_clock_ms()
        interval_ms = self._parts.settings.assignment_interval_ms(group.group_id)
        is_due = group.may_compute_target(interval_ms, now_ms)
        if group.assignment_epoch >= group_epoch or not is_due:
            return group.assignment_epoch, group.target_of(updated)
        wanted = group.next_preferred_assignor(change.member, updated)
        assignor = ASSIGNORS[wanted or self._parts.settings.default_assignor]
        try:
            target, changes = compute_target(
                group,
                updated,
                homogeneous=homogeneous,
                assignor=assignor,
                image=self._parts.environment.image(),
                group_epoch=group_epoch,
                now_ms=now_ms,
            )
        except AssignorError as error:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Failed to compute a new target assignment for epoch {group_epoch}: {error}",
            ) from error
        change.written.extend(changes)
        return group_epoch, target

    def reconcile(
        self, change: MemberChange, target_epoch: int, target: Partitions, subscription_changed: bool
    ) -> ConsumerMember:
        """Do D: return the member after its next step, and time it if it has to revoke."""
        group, member = change.group, change.updated
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        image = self._parts.environment.image()
        names = subscribed_topics(member, group.resolved)
        step = Reconciliation(
            target_epoch=target_epoch,
            target=target,
            subscribed_topic_ids=frozenset(topic_ids_of(names, image)),
            subscribes_to_nothing=not names,
            subscription_changed=subscription_changed,
            partition_epoch=group.partition_epoch,
            owned=change.owned,
        )
        after = step.next_step(member)
        if after == member:
            return after
        change.written.append(records.current_assignment(group.group_id, after))
        if not after.uses_classic_protocol:
            if after.state is MemberState.UNREVOKED_PARTITIONS:
                self.time_revocation(group.group_id, after)
            else:
                self._parts.timers.end(Wait.REVOCATION, MemberKey(group.group_id, after.member_id))
        return after

    def time_revocation(self, group_id: str, member: ConsumerMember) -> None:
        """Give the member its rebalance timeout to revoke; it is fenced if its epoch is the same then."""
        member_id, epoch = member.member_id, member.member_epoch
        self._parts.timers.begin(
            Wait.REVOCATION,
            MemberKey(group_id, member_id),
            member.rebalance_timeout_ms,
            lambda: self._fencing.expire_in_epoch(group_id, member_id, epoch),
            member.client_id,
        )
