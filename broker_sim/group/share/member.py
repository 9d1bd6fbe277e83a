"""A member of a share group; mirrors `ShareGroupMember`.

Members are immutable: each change creates a new one with `dataclasses.replace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from broker_sim.group.modern.assigned_group import LEAVE_GROUP_EPOCH
from broker_sim.group.modern.assignment import target_from_record
from broker_sim.hash_order.hash_codes import uuid_hash
from broker_sim.hash_order.java_order import hash_order, table_capacity

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from broker_sim.group import record_messages
    from broker_sim.group.modern.assignment import Partitions

STABLE: Final = 0
"""Number of the only member state in records."""

Assigned: TypeAlias = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; as in Kafka, a topic may have none."""

NOTHING: Final[Assigned] = {}


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One member of a share group."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: int = STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    names_in_order: tuple[str, ...] = field(default=(), compare=False)
    """Subscribed topic names in the order of the request or record."""
    assigned: Assigned = field(default_factory=lambda: NOTHING)
    assigned_in_order: tuple[tuple[bytes, tuple[int, ...]], ...] = field(default=(), compare=False)
    """The assignment in the order of Kafka's tables, which differs between a computed and a loaded one."""

    instance_id: ClassVar[None] = None
    is_revoking: ClassVar[bool] = False
    """Always False: a share partition may have several members, so none must revoke it first."""
    rebalance_timeout_ms: ClassVar[int] = 0

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether the member has the target of that epoch."""
        return self.state == STABLE and self.member_epoch == assignment_epoch

    def with_topic_names(self, names: Sequence[str]) -> ShareMember:
        """Return the member with this subscription."""
        return replace(self, subscribed_topic_names=frozenset(names), names_in_order=tuple(dict.fromkeys(names)))

    def towards(
        self,
        target_epoch: int,
        target: Partitions,
        subscribed_topic_ids: Collection[bytes],
        *,
        subscription_changed: bool,
    ) -> ShareMember:
        """Return the member with its target, the same object if unchanged; mirrors `ShareGroupAssignmentBuilder`."""
        if target_epoch == self.member_epoch and not subscription_changed:
            return self
        member = self._with_partitions(_without_others(target, subscribed_topic_ids))
        if target_epoch == self.member_epoch:
            return member
        return replace(member, state=STABLE, member_epoch=target_epoch, previous_member_epoch=self.member_epoch)

    def _with_partitions(self, partitions: Partitions) -> ShareMember:
        return replace(
            self,
            assigned={topic_id: frozenset(numbers) for topic_id, numbers in partitions.items()},
            assigned_in_order=tuple((topic_id, tuple(numbers)) for topic_id, numbers in partitions.items()),
        )

    def without_assignment(self) -> ShareMember:
        """Return the member after leaving."""
        return replace(
            self,
            member_epoch=LEAVE_GROUP_EPOCH,
            previous_member_epoch=LEAVE_GROUP_EPOCH,
            assigned=NOTHING,
            assigned_in_order=(),
        )

    def with_metadata(self, value: record_messages.ShareGroupMemberMetadataValue) -> ShareMember:
        """Return the member with the subscription in a record."""
        return replace(
            self.with_topic_names(value.subscribed_topic_names),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
        )

    def with_assignment(self, value: record_messages.ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
        """Return the member with the assignment in a record."""
        stored = ((topic.topic_id, topic.partitions) for topic in value.assigned_partitions)
        return replace(
            self._with_partitions(target_from_record(stored)),
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=value.state,
        )


def _without_others(target: Partitions, topic_ids: Collection[bytes]) -> Partitions:
    """Return the target restricted to these topics; as in Kafka, it is copied if it has others."""
    if all(topic_id in topic_ids for topic_id in target):
        return target
    capacity = table_capacity(int(len(target) / 0.75 + 1))
    copied = hash_order(target, uuid_hash, capacity)
    return {topic_id: target[topic_id] for topic_id in copied if topic_id in topic_ids}
