"""The reconciliation of a member with its target; mirrors `CurrentAssignmentBuilder`.

A member must revoke partitions that are not in its target before it gets the target's epoch; then it gets the
partitions that have no owner, and waits for the rest:

    STABLE, older epoch ---> UNREVOKED ---> UNRELEASED ---> STABLE, target's epoch
                             until the member no       until other members
                             longer reports them       have released the
                             as owned                  partitions

Unnecessary steps are skipped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer.consumer_group import UNOWNED
from broker_sim.group.modern.assigned_group import MemberState
from broker_sim.group.modern.assignment import NO_EPOCHS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.modern.assignment import Epochs, Partitions


class CurrentAssignmentBuilder(NamedTuple):
    """The input of a member's next step."""

    target_epoch: int
    target: Partitions
    subscribed_topic_ids: Collection[bytes]
    """The existing topics that the member subscribes to."""
    subscribes_to_nothing: bool
    """Whether the member's subscription is empty, also of topics that do not exist."""
    subscription_changed: bool
    """Whether the member has just changed its subscription: unsubscribed topics are then revoked at once."""
    partition_epoch: Callable[[bytes, int], int]
    """Returns the epoch of the member that owns a partition, `UNOWNED` if it has no owner."""
    owned: Mapping[bytes, Sequence[int]] | None
    """The partitions that the member reports as owned; None if it does not report any."""

    def build(self, member: ConsumerMember) -> ConsumerMember:
        """Return the member after its next step; the same object if there is none.

        Raises `ApiError` FENCED_MEMBER_EPOCH for a member in a state written by a later Kafka release.
        """
        match member.state:
            case MemberState.STABLE:
                if member.member_epoch != self.target_epoch:
                    return self._towards_target(member)
                return self._without_unsubscribed_topics(member) if self.subscription_changed else member
            case MemberState.UNREVOKED:
                if self._still_owns(member.pending_revocation):
                    changed = self.subscription_changed
                    return self._without_unsubscribed_topics(member) if changed else member
                return self._towards_target(member)
            case MemberState.UNRELEASED:
                return self._towards_target(member)
            case MemberState.UNKNOWN:
                if self.owned is None or self.owned:
                    raise ApiError(
                        ErrorCode.FENCED_MEMBER_EPOCH,
                        "The consumer group member is in a unknown state. "
                        "The member must abandon all its partitions and rejoin.",
                    )
                return self._towards_target(member, self.target_epoch)

    def _still_owns(self, pending_revocation: Epochs) -> bool:
        if self.owned is None:
            return True
        return any(
            number in pending_revocation.get(topic_id, ())
            for topic_id, numbers in self.owned.items()
            for number in numbers
        )

    def _without_unsubscribed_topics(self, member: ConsumerMember) -> ConsumerMember:
        """Revoke topics that the member no longer subscribes to, and keep the rest."""
        unsubscribed_topics = [topic for topic in member.assigned if topic not in self.subscribed_topic_ids]
        revokes_all = self.subscribes_to_nothing and not member.pending_revocation
        if not unsubscribed_topics and not revokes_all:
            return member
        assigned = {t: epochs for t, epochs in member.assigned.items() if t not in unsubscribed_topics}
        pending = dict(member.pending_revocation)
        for topic_id in unsubscribed_topics:
            pending[topic_id] = {**pending.get(topic_id, {}), **member.assigned[topic_id]}
        if pending and self._still_owns(pending):
            return replace(
                member.with_epoch(member.member_epoch),
                state=MemberState.UNREVOKED,
                assigned=assigned,
                pending_revocation=pending,
            )
        return replace(member.with_epoch(member.member_epoch), assigned=assigned)

    def _towards_target(self, member: ConsumerMember, epoch: int | None = None) -> ConsumerMember:
        assigned: dict[bytes, dict[int, int]] = {}
        to_revoke: dict[bytes, dict[int, int]] = {}
        to_assign: dict[bytes, list[int]] = {}
        has_unreleased = False
        for topic_id in {**self.target, **member.assigned}:
            current = member.assigned.get(topic_id, {})
            subscribed = topic_id in self.subscribed_topic_ids
            target = self.target.get(topic_id, ()) if subscribed else ()
            target_numbers = frozenset(target)
            retained = {number: epoch for number, epoch in current.items() if number in target_numbers}
            revoked = {number: epoch for number, epoch in current.items() if number not in target_numbers}
            own_pending = member.pending_revocation.get(topic_id, {})
            free = []
            for number in target:
                if number in retained:
                    continue
                if number not in own_pending and self.partition_epoch(topic_id, number) != UNOWNED:
                    has_unreleased = True
                else:
                    free.append(number)
            if retained:
                assigned[topic_id] = retained
            if revoked:
                to_revoke[topic_id] = revoked
            if free:
                to_assign[topic_id] = free
        if to_revoke and self._still_owns(to_revoke):
            return replace(
                member.with_epoch(member.member_epoch if epoch is None else epoch),
                state=MemberState.UNREVOKED,
                assigned=assigned,
                pending_revocation=to_revoke,
            )
        for topic_id, numbers in to_assign.items():
            assigned.setdefault(topic_id, {}).update(dict.fromkeys(numbers, self.target_epoch))
        return replace(
            member.with_epoch(self.target_epoch),
            state=MemberState.UNRELEASED if has_unreleased else MemberState.STABLE,
            assigned=assigned,
            pending_revocation=NO_EPOCHS,
        )
