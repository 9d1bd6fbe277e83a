"""A member of a share group; mirrors `ShareGroupMember`.

A member never changes: each change makes another one with `dataclasses.replace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from broker_sim.group import record_messages
    from broker_sim.group.modern.assignment import Partitions

__all__ = ["LEAVE_GROUP_EPOCH", "Assigned", "ShareMember", "assigned_of"]

LEAVE_GROUP_EPOCH: Final = -1
"""The epoch of a member that leaves."""
STABLE: Final = 0
"""The one state of a member, as the log has it: it needs nothing from others."""

Assigned: TypeAlias = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; as in Kafka, a topic may be without partitions."""

NOTHING: Final[Assigned] = {}


def assigned_of(target: Partitions) -> Assigned:
    """Return partitions as a member has them."""
    return {topic_id: frozenset(numbers) for topic_id, numbers in target.items()}


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One member."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: int = STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    names_in_order: tuple[str, ...] = field(default=(), compare=False)
    """The subscribed names in the order in which they were told."""
    assigned: Assigned = field(default_factory=lambda: NOTHING)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether it has the target of that epoch."""
        return self.state == STABLE and self.member_epoch == assignment_epoch

    def with_topic_names(self, names: Sequence[str]) -> ShareMember:
        """Return the member with that subscription."""
        return replace(
            self,
            subscribed_topic_names=frozenset(names),
            names_in_order=tuple(dict.fromkeys(names)),
        )

    def towards(
        self,
        target_epoch: int,
        target: Partitions,
        subscribed_topic_ids: Collection[bytes],
        *,
        subscription_changed: bool,
    ) -> ShareMember:
        """Return the member with its target, or the same member; mirrors `ShareGroupAssignmentBuilder`.

        Nothing has to be given up first: a share partition may have several members.
        """
        if target_epoch == self.member_epoch and not subscription_changed:
            return self
        assigned = {
            topic_id: numbers
            for topic_id, numbers in assigned_of(target).items()
            if topic_id in subscribed_topic_ids
        }
        if target_epoch == self.member_epoch:
            return replace(self, assigned=assigned)
        return replace(
            self,
            state=STABLE,
            assigned=assigned,
            member_epoch=target_epoch,
            previous_member_epoch=self.member_epoch,
        )

    def without_partitions(self) -> ShareMember:
        """Return a member that has left."""
        return replace(
            self,
            member_epoch=LEAVE_GROUP_EPOCH,
            previous_member_epoch=LEAVE_GROUP_EPOCH,
            assigned=NOTHING,
        )

    def with_metadata(self, value: record_messages.ShareGroupMemberMetadataValue) -> ShareMember:
        """Return the member with what a record says of its subscription."""
        return replace(
            self.with_topic_names(value.subscribed_topic_names),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
        )

    def with_assignment(
        self, value: record_messages.ShareGroupCurrentMemberAssignmentValue
    ) -> ShareMember:
        """Return the member with what a record says of its partitions."""
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=value.state,
            assigned={
                topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions
            },
        )
