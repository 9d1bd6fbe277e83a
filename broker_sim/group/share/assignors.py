"""The assignor of share groups; mirrors `SimpleAssignor` and its two builders.

Share partitions are shared: with more members than partitions several members have the same one. Each
member is to have about as many as the others, and to keep what it has. The steps:

A. take what members have, without topics that they left
B. take away from members that have too many
C. take away from members of partitions that have too many
D. give partitions that have too few to members that have too few

Where all members subscribe to the same topics, this is done once for all partitions, else for each topic
by itself. The order in which Kafka's tables hand out members and partitions decides who gets what, so
these are tables of the same order.

Deliberate difference: a table of which a bucket has eight keys or more is a tree in Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Generic, TypeVar

from broker_sim.hash_order.hash_codes import INT_MASK, integer_hash, uuid_hash
from broker_sim.hash_order.java_order import HashTable, copied_capacity, table_capacity

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from broker_sim.group.modern.assignment import Partitions

P = TypeVar("P", bound="Hashable")
TopicIdPartition = tuple[bytes, int]


@dataclass(frozen=True, slots=True)
class ShareMemberSpec:
    """One member: the existing topics that it subscribes to, in Kafka's order, and its last target."""

    topic_ids: Sequence[bytes]
    target: Partitions


@dataclass(frozen=True, slots=True)
class ShareGroupSpec:
    """A group: its members in the order of Kafka's table, and which partitions may be assigned."""

    members: Mapping[str, ShareMemberSpec]
    homogeneous: bool
    """Whether all members subscribe to the same topics."""
    assignable: Mapping[bytes, Sequence[int]]
    """Partitions that have state, by topic id, of all topics that members subscribe to."""


def assign(spec: ShareGroupSpec) -> dict[str, Partitions]:
    """Return the new targets."""
    members = list(spec.members.values())
    drafts = [_Draft(member.target) for member in members]
    if spec.homogeneous:
        topics = members[0].topic_ids if members else ()
        if not topics:
            return {}
        _assign_together(spec, drafts, topics)
    else:
        if not any(member.topic_ids for member in members):
            return {}
        _assign_by_topic(spec, members, drafts)
    return {member_id: draft.partitions() for member_id, draft in zip(spec.members, drafts, strict=True)}


def _sized(count: int) -> int:
    """Return the buckets of `AssignorHelpers.newHashMap`."""
    return table_capacity(int((count + 1) / 0.75 + 1))


def _partition_hash(partition: TopicIdPartition) -> int:
    """Return the hash code of the record `TopicIdPartition`."""
    topic_id, number = partition
    return (31 * uuid_hash(topic_id) + number) & INT_MASK


class _Draft:
    """The target of one member while it is computed: the last one until something changes."""

    __slots__ = ("_changed", "_last")

    def __init__(self, last: Partitions) -> None:
        self._last = last
        self._changed: HashTable[bytes, HashTable[int, None]] | None = None

    @property
    def last(self) -> Partitions:
        """The target before."""
        return self._last

    @property
    def changed(self) -> HashTable[bytes, HashTable[int, None]]:
        """A copy of the target before, which can be changed."""
        if self._changed is None:
            copy: HashTable[bytes, HashTable[int, None]]
            copy = HashTable(uuid_hash, table_capacity(len(self._last)))
            for topic_id, numbers in self._last.items():
                copied_numbers: HashTable[int, None] = HashTable(integer_hash, copied_capacity(len(numbers)))
                for number in numbers:
                    copied_numbers.put(number, None)
                copy.put(topic_id, copied_numbers)
            self._changed = copy
        return self._changed

    def copy(self) -> None:
        """Copy the target before, though nothing need change."""
        _ = self.changed

    def add(self, topic_id: bytes, number: int) -> None:
        """Give the member a partition."""
        numbers = self.changed.get(topic_id)
        if numbers is None:
            numbers = HashTable(integer_hash)
            self.changed.add(topic_id, numbers)
        numbers.put(number, None)

    def discard(self, topic_id: bytes, number: int) -> bool:
        """Take a partition away; returns whether the member had it."""
        numbers = self.changed.get(topic_id)
        if numbers is None or number not in numbers:
            return False
        del numbers[number]
        return True

    def partitions(self) -> Partitions:
        """Return the new target. As in Kafka a topic may stay without partitions."""
        if self._changed is None:
            return self._last
        return {topic_id: tuple(self._changed[topic_id].in_order()) for topic_id in self._changed.in_order()}


def _table() -> HashTable[int, None]:
    return HashTable(integer_hash)


@dataclass(slots=True)
class _Balance(Generic[P]):
    """The members of each partition that is shared out, and the partitions of each member.

    `member_of`: members are numbers, partitions what tells them apart.
    """

    drafts: Sequence[_Draft]
    quotas: Mapping[int, int]
    """Number of partitions that each member should have."""
    sharing: int
    """Number of members that each partition should have."""
    split: Callable[[P], TopicIdPartition]
    hash_code: Callable[[P], int]
    members_of: HashTable[P, HashTable[int, None]]
    partitions_of: HashTable[int, HashTable[P, None]]
    unfilled: HashTable[int, None] = field(default_factory=_table)
    """The members that have too few."""

    def note(self, member: int, partition: P) -> None:
        """Note that the member has the partition."""
        members = self.members_of.get(partition)
        if members is None:
            members = _table()
            self.members_of.add(partition, members)
        members.put(member, None)
        self._note_of(member).put(partition, None)

    def _note_of(self, member: int) -> HashTable[P, None]:
        partitions = self.partitions_of.get(member)
        if partitions is None:
            partitions = HashTable(self.hash_code)
            self.partitions_of.add(member, partitions)
        return partitions

    def count(self, member: int) -> int:
        """Return how many partitions the member has."""
        return len(self.partitions_of.get(member, ()))

    def revoke_overfilled(self, members: Sequence[int]) -> None:
        """Do B for these members."""
        for member in members:
            partitions = self.partitions_of.get(member)
            if partitions is None:
                continue
            for partition in partitions.in_order():
                if len(partitions) <= self.quotas[member]:
                    break
                self.drafts[member].discard(*self.split(partition))
                del self.members_of[partition][member]
                del partitions[partition]

    def revoke_overshared(self) -> None:
        """Do C."""
        for partition in self.members_of.in_order():
            members = self.members_of[partition]
            for member in members.in_order():
                if len(members) <= self.sharing:
                    break
                if self.drafts[member].discard(*self.split(partition)):
                    del members[member]
                    del self.partitions_of[member][partition]
                    self.unfilled.put(member, None)

    def assign_remaining(self) -> None:
        """Do D: go round the members once and again, as long as a round gives something away."""
        waiting = iter(self.unfilled.in_order())
        has_given = False
        for partition in self.members_of.in_order():
            if not self.unfilled:
                break
            members = self.members_of[partition]
            to_give = self.sharing - len(members)
            while to_give > 0:
                member = next(waiting, None)
                if member is None:
                    if not has_given:
                        break
                    waiting = iter(self.unfilled.in_order())
                    has_given = False
                    member = next(waiting, None)
                    if member is None:
                        break
                if member in members:
                    continue
                self.drafts[member].add(*self.split(partition))
                self._note_of(member).put(partition, None)
                to_give -= 1
                has_given = True
                if self.count(member) >= self.quotas[member]:
                    del self.unfilled[member]


def _quotas(members: Sequence[int], partitions: int) -> tuple[int, dict[int, int]]:
    """Return how many members a partition is to have, and how many partitions each member."""
    if not members:
        return 0, {}
    sharing = -(-len(members) // partitions) if partitions else 0
    precise = sharing * partitions / len(members)
    return sharing, {
        member: ceil(precise * (index + 1)) - ceil(precise * index) for index, member in enumerate(members)
    }


def _assign_together(spec: ShareGroupSpec, drafts: Sequence[_Draft], topic_ids: Sequence[bytes]) -> None:
    """Share out all partitions of the topics among all members."""
    everybody = range(len(drafts))
    partitions = [(topic_id, number) for topic_id in topic_ids for number in spec.assignable[topic_id]]
    sharing, quotas = _quotas(everybody, len(partitions))
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
    for member in everybody:
        draft = drafts[member]
        for topic_id, numbers in draft.last.items():
            if topic_id not in topic_ids:
                draft.changed.pop(topic_id, None)
                continue
            for number in numbers:
                balance.note(member, (topic_id, number))
        if balance.count(member) < quotas[member]:
            balance.unfilled.put(member, None)
            continue
        if balance.count(member):
            # As in Kafka, the target of who has enough is copied, which may change its order.
            draft.copy()
        if balance.count(member) > quotas[member]:
            overfilled.append(member)
    balance.revoke_overfilled(overfilled)
    balance.revoke_overshared()
    for partition in partitions:
        if partition not in balance.members_of:
            balance.members_of.add(partition, _table())
    balance.assign_remaining()


def _assign_by_topic(spec: ShareGroupSpec, members: Sequence[ShareMemberSpec], drafts: Sequence[_Draft]) -> None:
    """Share out each topic among the members that subscribe to it."""
    topic_ids: HashTable[bytes, None] = HashTable(uuid_hash)
    subscribed: dict[bytes, list[int]] = {}
    for index, member in enumerate(members):
        for topic_id in member.topic_ids:
            topic_ids.put(topic_id, None)
            subscribed.setdefault(topic_id, []).append(index)
    for topic_id in topic_ids.in_order():
        _assign_topic(topic_id, spec.assignable[topic_id], subscribed[topic_id], drafts)


def _assign_topic(topic_id: bytes, numbers: Sequence[int], subscribed: Sequence[int], drafts: Sequence[_Draft]) -> None:
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
        for number in draft.last.get(topic_id, ()):
            balance.note(member, number)
    balance.revoke_overfilled(balance.partitions_of.in_order())
    balance.revoke_overshared()
    for number in numbers:
        if number not in balance.members_of:
            balance.members_of.add(number, HashTable(integer_hash, _sized(len(subscribed))))
    # Unlike for all topics together, who has lost a partition counts as unfilled only if it has too few.
    balance.unfilled = HashTable(integer_hash, _sized(len(drafts)))
    for member in subscribed:
        if balance.count(member) < quotas[member]:
            balance.unfilled.put(member, None)
    balance.assign_remaining()
