"""Assigns consecutive partitions of each topic to members; mirrors `RangeAssignor`.

Topics with equal numbers of partitions are assigned alike (co-partitioning). Static members come first,
ordered by instance id, then others by member id. Previous assignments are ignored.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker_sim.group.java_text import text_order
from broker_sim.hash_order.hash_codes import uuid_hash
from broker_sim.hash_order.java_order import hash_order, table_capacity

if TYPE_CHECKING:
    from broker_sim.group.consumer.assignors.spec import GroupSpec
    from broker_sim.group.modern.assignment import Partitions


class _Topic:
    """The next partition of a topic to assign, and the remaining shares."""

    __slots__ = ("_extra", "_next", "_partitions", "_quota")

    def __init__(self, partitions: int, members: int) -> None:
        self._partitions = partitions
        self._quota, self._extra = divmod(partitions, members)
        self._next = 0

    def take(self) -> range:
        """Return the next member's share, which may be empty."""
        quota = self._quota
        if self._extra > 0:
            quota += 1
            self._extra -= 1
        start = self._next
        self._next = min(start + quota, self._partitions)
        return range(start, self._next)


def assign_ranges(spec: GroupSpec) -> dict[str, Partitions]:
    """Return the new target of every member. Raises `AssignorError` if a topic does not exist."""
    members = sorted(spec.members, key=lambda member_id: _rank(spec, member_id))
    subscriptions = {member_id: spec.members[member_id].topic_ids for member_id in members}
    if spec.homogeneous and members:
        # As in Kafka, only the first member's subscription is used, even if others differ by now.
        subscriptions = dict.fromkeys(members, subscriptions[members[0]])
    subscribers = Counter(topic_id for topic_ids in subscriptions.values() for topic_id in topic_ids)
    topics = {topic_id: _Topic(spec.partition_count(topic_id), count) for topic_id, count in subscribers.items()}
    result: dict[str, Partitions] = {}
    for member_id, topic_ids in subscriptions.items():
        shares = {topic_id: topics[topic_id].take() for topic_id in topic_ids}
        size = len(topic_ids) if spec.homogeneous else spec.members[member_id].subscribed_size
        ordered = hash_order(shares, uuid_hash, table_capacity(int(size / 0.75 + 1)))
        result[member_id] = {topic: shares[topic] for topic in ordered if shares[topic]}
    return result


def _rank(spec: GroupSpec, member_id: str) -> tuple[bool, bytes]:
    instance_id = spec.members[member_id].instance_id
    text = member_id if instance_id is None else instance_id
    return instance_id is None, text_order(text)
