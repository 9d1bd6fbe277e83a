"""The uniform assignment where members subscribe to different topics.

Mirrors `UniformHeterogeneousAssignmentBuilder`, in three steps:
1. members keep what they have of the topics that they still subscribe to
2. topics with many partitions per subscriber first, each free partition goes to the subscriber that
   has fewest partitions
3. topic by topic, partitions move from subscribers with many partitions to those with few, until no
   move makes it more even or `MAX_ROUNDS` is reached
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.group.consumer.assignors.balancer import Balancer
from broker_sim.group.consumer.assignors.draft import Draft
from broker_sim.hash_order.java_order import table_capacity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.group.consumer.assignors.spec import GroupSpec
    from broker_sim.group.modern.assignment import Partitions

MAX_ROUNDS: Final = 16
NOBODY: Final = -1


def assign_heterogeneous(spec: GroupSpec) -> dict[str, Partitions]:
    """Return the new target of every member; nothing at all without topics."""
    builder = _Builder(spec)
    return builder.build() if builder.subscribers else {}


class _Builder:
    """Members are known by their place in the table of members."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._members = list(spec.members)
        self.subscribers: dict[bytes, list[int]] = {}
        for index, member in enumerate(spec.members.values()):
            for topic_id in member.topic_ids:
                spec.partition_count(topic_id)
                self.subscribers.setdefault(topic_id, []).append(index)
        self._owners = {topic_id: [NOBODY] * spec.partition_count(topic_id) for topic_id in self.subscribers}
        self._sizes = [0] * len(self._members)
        """How many partitions each member has."""
        self._drafts = [Draft(member.target) for member in spec.members.values()]

    def build(self) -> dict[str, Partitions]:
        """Return the new target of every member."""
        self._keep()
        balancer = Balancer(self._sizes)
        self._assign_free(balancer)
        self._balance(balancer)
        drafts = zip(self._members, self._drafts, strict=True)
        return {member_id: draft.finish() for member_id, draft in drafts}

    def _keep(self) -> None:
        for index, member in enumerate(self._spec.members.values()):
            subscribed = frozenset(member.topic_ids)
            for topic_id, partitions in member.target.items():
                if topic_id not in subscribed:
                    self._drafts[index].remove_topic(topic_id)
                    continue
                self._sizes[index] += len(partitions)
                for number in partitions:
                    self._owners[topic_id][number] = index

    def _assign_free(self, balancer: Balancer) -> None:
        free = {
            topic_id: [number for number, owner in enumerate(owners) if owner == NOBODY]
            for topic_id, owners in self._owners.items()
        }
        for topic_id in self._sorted(topic_id for topic_id, numbers in free.items() if numbers):
            balancer.start(self.subscribers[topic_id])
            for number in free[topic_id]:
                self._give(topic_id, number, balancer.next_least_loaded())

    def _sorted(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        """Return topics with most partitions per subscriber first, then fewest subscribers, then id."""

        def rank(topic_id: bytes) -> tuple[float, int, int, int]:
            subscribers = len(self.subscribers[topic_id])
            return (
                -self._spec.partition_count(topic_id) / subscribers,
                subscribers,
                int.from_bytes(topic_id[:8], "big", signed=True),
                int.from_bytes(topic_id[8:], "big", signed=True),
            )

        return sorted(topic_ids, key=rank)

    def _balance(self, balancer: Balancer) -> None:
        """Balance topic after topic until a whole round has moved nothing."""
        shared = self._sorted(topic for topic, m in self.subscribers.items() if len(m) > 1)
        last_moved = -1
        for _ in range(MAX_ROUNDS):
            for index, topic_id in enumerate(shared):
                if index == last_moved:
                    return
                if self._balance_topic(topic_id, balancer) or last_moved < 0:
                    last_moved = index

    def _balance_topic(self, topic_id: bytes, balancer: Balancer) -> int:
        """Return how many partitions of the topic moved."""
        if balancer.start(self.subscribers[topic_id]) <= 1:
            return 0
        owned: dict[int, list[int]] = {}
        for number, owner in enumerate(self._owners[topic_id]):
            owned.setdefault(owner, []).append(number)
        moved = 0
        while True:
            giver = balancer.next_most_loaded()
            while giver is not None and not owned.get(giver):
                balancer.exclude_most_loaded()
                giver = balancer.next_most_loaded()
            if giver is None:
                return moved
            number = owned[giver].pop()
            taker = balancer.next_least_loaded()
            if balancer.is_balanced:
                return moved
            self._give(topic_id, number, taker)
            moved += 1

    def _give(self, topic_id: bytes, number: int, taker: int) -> None:
        owners = self._owners[topic_id]
        giver = owners[number]
        if giver != NOBODY:
            self._drafts[giver].remove(topic_id, number)
            self._sizes[giver] -= 1
        share = -(-len(owners) // len(self.subscribers[topic_id]))
        self._drafts[taker].add(topic_id, number, table_capacity(int(share / 0.75 + 1)))
        owners[number] = taker
        self._sizes[taker] += 1
