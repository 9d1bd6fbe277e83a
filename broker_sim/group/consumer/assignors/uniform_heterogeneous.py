"""The uniform assignor for members that subscribe to different topics.

Mirrors `UniformHeterogeneousAssignmentBuilder`, in three steps:
1. members keep the partitions of topics that they still subscribe to
2. topic by topic, beginning with the most partitions per subscriber, each free partition goes to the subscriber
   with the fewest partitions
3. topic by topic, partitions move from the subscribers with the most partitions to those with the fewest, until
   no move improves the balance or `MAX_ROUNDS` is reached
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.group.modern.assignment import Draft
from broker_sim.hash_order.java_order import table_capacity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_sim.group.consumer.assignors.spec import GroupSpec
    from broker_sim.group.modern.assignment import Partitions


class Balancer:
    """Selects, among the subscribers of a topic, the next member to take and the next to give a partition.

    Mirrors `MemberAssignmentBalancer`. Members are sorted by their number of partitions (`sizes`). One range grows
    from the left and takes, one grows from the right and gives. All members of a range have the same number of
    partitions when it grows, and each turn of a member changes its number by one. Call `start` for each topic.

        partitions   .       #
                     .     ###   <- the most loaded range gives
                     ## ######
                     ^^ the least loaded range takes
    """

    __slots__ = (
        "_least_count",
        "_least_end",
        "_members",
        "_most_count",
        "_most_end",
        "_most_start",
        "_next_least",
        "_next_most",
        "_sizes",
    )

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._members: list[int] = []
        self._least_end = self._next_least = 0
        self._most_start = self._most_end = self._next_most = 0
        self._least_count = self._most_count = 0

    def start(self, members: Sequence[int]) -> int:
        """Begin a topic with these subscribers; return the difference between the most and fewest partitions."""
        sizes = self._sizes
        self._members = sorted(members, key=lambda member: (sizes[member], member))
        lowest, highest = sizes[self._members[0]], sizes[self._members[-1]]
        self._least_end = self._next_least = 0
        self._least_count = lowest - 1
        self._most_start = self._most_end = len(members)
        self._most_count = highest + 1
        self._next_most = len(members) - 1
        return highest - lowest

    @property
    def is_balanced(self) -> bool:
        """Whether another move would not improve the balance."""
        return self._most_count - self._least_count <= 1

    def next_least_loaded(self) -> int:
        """Return the next member to take a partition."""
        if self._next_least >= self._least_end:
            self._least_count += 1
            while (
                self._least_end < len(self._members)
                and self._sizes[self._members[self._least_end]] == self._least_count
            ):
                self._least_end += 1
            self._next_least = 0
        member = self._members[self._next_least]
        self._next_least += 1
        return member

    def next_most_loaded(self) -> int | None:
        """Return the next member to give a partition, None if none is left."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # No member of the range had partitions to give: continue with those that have fewer.
                self._most_count = self._sizes[self._members[self._most_start - 1]]
            else:
                self._most_count -= 1
            while self._most_start > 0 and self._sizes[self._members[self._most_start - 1]] == self._most_count:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        member = self._members[self._next_most]
        self._next_most -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """Exclude the member that `next_most_loaded` has just returned: it has nothing to give."""
        at, last = self._next_most + 1, self._most_end - 1
        self._members[at], self._members[last] = self._members[last], self._members[at]
        self._most_end -= 1


MAX_ROUNDS: Final = 16
NO_OWNER: Final = -1


def assign_heterogeneous(spec: GroupSpec) -> dict[str, Partitions]:
    """Return the new target of every member; nothing at all without topics."""
    builder = _Builder(spec)
    return builder.build() if builder.subscribers else {}


class _Builder:
    """Builds the assignment; members are identified by their index in the member table."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._members = list(spec.members)
        self.subscribers: dict[bytes, list[int]] = {}
        for index, member in enumerate(spec.members.values()):
            for topic_id in member.topic_ids:
                spec.partition_count(topic_id)
                self.subscribers.setdefault(topic_id, []).append(index)
        self._owners = {topic_id: [NO_OWNER] * spec.partition_count(topic_id) for topic_id in self.subscribers}
        self._sizes = [0] * len(self._members)
        """Number of partitions of each member."""
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
                    del self._drafts[index].changed[topic_id]
                    continue
                self._sizes[index] += len(partitions)
                for number in partitions:
                    self._owners[topic_id][number] = index

    def _assign_free(self, balancer: Balancer) -> None:
        free = {
            topic_id: [number for number, owner in enumerate(owners) if owner == NO_OWNER]
            for topic_id, owners in self._owners.items()
        }
        for topic_id in self._sorted(topic_id for topic_id, numbers in free.items() if numbers):
            balancer.start(self.subscribers[topic_id])
            for number in free[topic_id]:
                self._give(topic_id, number, balancer.next_least_loaded())

    def _sorted(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        """Return the topics sorted by partitions per subscriber (descending), subscribers, and id."""

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
        """Balance topic by topic until a complete round has moved nothing."""
        shared_topics = self._sorted(topic for topic, m in self.subscribers.items() if len(m) > 1)
        last_moved = -1
        for _ in range(MAX_ROUNDS):
            for index, topic_id in enumerate(shared_topics):
                if index == last_moved:
                    return
                if self._balance_topic(topic_id, balancer) or last_moved < 0:
                    last_moved = index

    def _balance_topic(self, topic_id: bytes, balancer: Balancer) -> int:
        """Balance one topic; return the number of partitions moved."""
        if balancer.start(self.subscribers[topic_id]) <= 1:
            return 0
        partitions_by_owner: dict[int, list[int]] = {}
        for number, owner in enumerate(self._owners[topic_id]):
            partitions_by_owner.setdefault(owner, []).append(number)
        move_count = 0
        while True:
            giver = balancer.next_most_loaded()
            while giver is not None and not partitions_by_owner.get(giver):
                balancer.exclude_most_loaded()
                giver = balancer.next_most_loaded()
            if giver is None:
                return move_count
            number = partitions_by_owner[giver].pop()
            taker = balancer.next_least_loaded()
            if balancer.is_balanced:
                return move_count
            self._give(topic_id, number, taker)
            move_count += 1

    def _give(self, topic_id: bytes, number: int, taker: int) -> None:
        owners = self._owners[topic_id]
        giver = owners[number]
        if giver != NO_OWNER:
            self._drafts[giver].remove(topic_id, number)
            self._sizes[giver] -= 1
        share = -(-len(owners) // len(self.subscribers[topic_id]))
        self._drafts[taker].add(topic_id, number, table_capacity(int(share / 0.75 + 1)))
        owners[number] = taker
        self._sizes[taker] += 1
