"""The assignor of share groups; mirrors `SimpleAssignor` and its two builders.

Share partitions are shared: with more members than partitions, several members get the same one. The assignment
should be balanced, and members should keep their partitions. The steps:

A. keep the members' partitions, except those of unsubscribed topics
B. revoke partitions from members with too many partitions
C. revoke partitions with too many members
D. assign partitions with too few members to members with too few partitions

If all members subscribe to the same topics, this is done once for all partitions, otherwise for each topic
separately. The result depends on the iteration order of Kafka's tables, so these have the same order.

Deliberate difference: in Kafka, table buckets with eight or more keys are trees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from broker_sim.group.modern.assignment import Draft
from broker_sim.hash_order.hash_codes import INT_MASK, integer_hash, uuid_hash
from broker_sim.hash_order.java_order import HashTable, table_capacity

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from broker_sim.group.modern.assignment import Partitions

P = TypeVar("P", bound="Hashable")
TopicIdPartition = tuple[bytes, int]


class ShareMemberSpec(NamedTuple):
    """One member: the existing topics that it subscribes to, in Kafka's order, and its previous target."""

    topic_ids: Sequence[bytes]
    target: Partitions


class ShareGroupSpec(NamedTuple):
    """A group: its members in the order of Kafka's table, and the partitions that may be assigned."""

    members: Mapping[str, ShareMemberSpec]
    homogeneous: bool
    """Whether all members subscribe to the same topics."""
    assignable: Mapping[bytes, Sequence[int]]
    """Partitions with state by topic id, for all topics that members subscribe to."""


def assign(spec: ShareGroupSpec) -> dict[str, Partitions]:
    """Return the new targets by member id; empty if no member subscribes to an existing topic."""
    members = list(spec.members.values())
    drafts = [Draft(member.target) for member in members]
    if spec.homogeneous:
        topics = members[0].topic_ids if members else ()
        if not topics:
            return {}
        _assign_together(spec, drafts, topics)
    else:
        if not any(member.topic_ids for member in members):
            return {}
        _assign_by_topic(spec, members, drafts)
    return {member_id: draft.finish() for member_id, draft in zip(spec.members, drafts, strict=True)}


def _sized(count: int) -> int:
    """Return the number of buckets of `AssignorHelpers.newHashMap(count)`."""
    return table_capacity(int((count + 1) / 0.75 + 1))


def _partition_hash(partition: TopicIdPartition) -> int:
    """Return the hash code of the record `TopicIdPartition`."""
    topic_id, number = partition
    return (31 * uuid_hash(topic_id) + number) & INT_MASK


def _table() -> HashTable[int, None]:
    return HashTable(integer_hash)


@dataclass(slots=True)
class _Balance(Generic[P]):
    """The members of each partition, and the partitions of each member, during an assignment.

    Members are represented by their index, partitions by `P`, which `split` converts.
    """

    drafts: Sequence[Draft]
    quotas: Mapping[int, int]
    """Target number of partitions by member."""
    sharing: int
    """Target number of members per partition."""
    split: Callable[[P], TopicIdPartition]
    hash_code: Callable[[P], int]
    members_of: HashTable[P, HashTable[int, None]]
    partitions_of: HashTable[int, HashTable[P, None]]
    unfilled: HashTable[int, None] = field(default_factory=_table)
    """Members with too few partitions."""

    def record(self, member: int, partition: P) -> None:
        """Record that the member has the partition."""
        members = self.members_of.get(partition)
        if members is None:
            members = _table()
            self.members_of.add(partition, members)
        members.put(member, None)
        self._partitions_for(member).put(partition, None)

    def _partitions_for(self, member: int) -> HashTable[P, None]:
        partitions = self.partitions_of.get(member)
        if partitions is None:
            partitions = HashTable(self.hash_code)
            self.partitions_of.add(member, partitions)
        return partitions

    def count(self, member: int) -> int:
        """Return the member's number of partitions."""
        return len(self.partitions_of.get(member, ()))

    def _revoke(self, member: int, partition: P) -> bool:
        """Revoke the partition; return whether the member had it. As in Kafka, its topic may be left without any."""
        topic_id, number = self.split(partition)
        numbers = self.drafts[member].changed.get(topic_id)
        if numbers is None or number not in numbers:
            return False
        del numbers[number]
        return True

    def revoke_overfilled(self, members: Sequence[int]) -> None:
        """Run step B for these members."""
        for member in members:
            partitions = self.partitions_of.get(member)
            if partitions is None:
                continue
            for partition in partitions.in_order():
                if len(partitions) <= self.quotas[member]:
                    break
                self._revoke(member, partition)
                del self.members_of[partition][member]
                del partitions[partition]

    def revoke_overshared(self) -> None:
        """Run step C."""
        for partition in self.members_of.in_order():
            members = self.members_of[partition]
            for member in members.in_order():
                if len(members) <= self.sharing:
                    break
                if self._revoke(member, partition):
                    del members[member]
                    del self.partitions_of[member][partition]
                    self.unfilled.put(member, None)

    def assign_remaining(self) -> None:
        """Run step D: iterate over the members repeatedly, until a round assigns nothing."""
        waiting = iter(self.unfilled.in_order())
        has_assigned = False
        for partition in self.members_of.in_order():
            if not self.unfilled:
                break
            members = self.members_of[partition]
            missing_count = self.sharing - len(members)
            while missing_count > 0:
                member = next(waiting, None)
                if member is None:
                    if not has_assigned:
                        break
                    waiting = iter(self.unfilled.in_order())
                    has_assigned = False
                    member = next(waiting, None)
                    if member is None:
                        break
                if member in members:
                    continue
                self.drafts[member].add(*self.split(partition))
                self._partitions_for(member).put(partition, None)
                missing_count -= 1
                has_assigned = True
                if self.count(member) >= self.quotas[member]:
                    del self.unfilled[member]


def _quotas(members: Sequence[int], partitions: int) -> tuple[int, dict[int, int]]:
    """Return the target number of members per partition, and the target number of partitions by member."""
    if not members:
        return 0, {}
    sharing = -(-len(members) // partitions) if partitions else 0
    precise = sharing * partitions / len(members)
    return sharing, {
        member: ceil(precise * (index + 1)) - ceil(precise * index) for index, member in enumerate(members)
    }


def _assign_together(spec: ShareGroupSpec, drafts: Sequence[Draft], topic_ids: Sequence[bytes]) -> None:
    """Assign all partitions of the topics to all members together."""
    all_members = range(len(drafts))
    partitions = [(topic_id, number) for topic_id in topic_ids for number in spec.assignable[topic_id]]
    sharing, quotas = _quotas(all_members, len(partitions))
    balance = _Balance[TopicIdPartition](
        drafts,
        quotas,
        sharing,
        split=lambda partition: partition,
        hash_code=_partition_hash,
        members_of=HashTable(_partition_hash, _sized(len(partitions))),
        partitions_of=HashTable(integer_hash, _sized(len(drafts))),
        unfilled=HashTable(integer_hash, _sized(len(drafts))),
    )
    overfilled = []
    for member in all_members:
        draft = drafts[member]
        for topic_id, numbers in draft.previous.items():
            if topic_id not in topic_ids:
                draft.changed.pop(topic_id, None)
                continue
            for number in numbers:
                balance.record(member, (topic_id, number))
        if balance.count(member) < quotas[member]:
            balance.unfilled.put(member, None)
            continue
        if balance.count(member):
            # As in Kafka, the target of a member with enough partitions is copied, which may change its order.
            draft.copy()
        if balance.count(member) > quotas[member]:
            overfilled.append(member)
    balance.revoke_overfilled(overfilled)
    balance.revoke_overshared()
    for partition in partitions:
        if partition not in balance.members_of:
            balance.members_of.add(partition, _table())
    balance.assign_remaining()


def _assign_by_topic(spec: ShareGroupSpec, members: Sequence[ShareMemberSpec], drafts: Sequence[Draft]) -> None:
    """Assign each topic to the members that subscribe to it."""
    topic_ids: HashTable[bytes, None] = HashTable(uuid_hash)
    subscribed: dict[bytes, list[int]] = {}
    for index, member in enumerate(members):
        for topic_id in member.topic_ids:
            topic_ids.put(topic_id, None)
            subscribed.setdefault(topic_id, []).append(index)
    for topic_id in topic_ids.in_order():
        _assign_topic(topic_id, spec.assignable[topic_id], subscribed[topic_id], drafts)


def _assign_topic(topic_id: bytes, numbers: Sequence[int], subscribed: Sequence[int], drafts: Sequence[Draft]) -> None:
    sharing, quotas = _quotas(subscribed, len(numbers))
    quotas = {**dict.fromkeys(range(len(drafts)), 0), **quotas}
    balance = _Balance[int](
        drafts,
        quotas,
        sharing,
        split=lambda number: (topic_id, number),
        hash_code=integer_hash,
        members_of=HashTable(integer_hash, _sized(len(numbers))),
        partitions_of=HashTable(integer_hash, _sized(len(subscribed))),
    )
    for member, draft in enumerate(drafts):
        for number in draft.previous.get(topic_id, ()):
            balance.record(member, number)
    balance.revoke_overfilled(balance.partitions_of.in_order())
    balance.revoke_overshared()
    for number in numbers:
        if number not in balance.members_of:
            balance.members_of.add(number, HashTable(integer_hash, _sized(len(subscribed))))
    # Unlike in `_assign_together`, a member that lost a partition is unfilled only if it has too few.
    balance.unfilled = HashTable(integer_hash, _sized(len(drafts)))
    for member in subscribed:
        if balance.count(member) < quotas[member]:
            balance.unfilled.put(member, None)
    balance.assign_remaining()
