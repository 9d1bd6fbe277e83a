"""A group whose members subscribe to topics and are assigned partitions; mirrors `ModernGroup`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from broker_sim.group.modern.assigned_group import AssignedGroup
from broker_sim.group.modern.assignment import NO_PARTITIONS, Partitions, same_partitions
from broker_sim.group.modern.topic_counts import TopicCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

M = TypeVar("M")


class ModernGroup(AssignedGroup[M, Partitions], Generic[M]):
    """The state of one group; its methods change it as records say, or look at it."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.topics = TopicCounts()
        self.is_homogeneous = True
        """Whether all members subscribed to the same topics when one of them last changed."""

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Whether a member names the topic, or an expression matches it."""
        return topic in self.topics

    def depends_on(self, topics: AbstractSet[str]) -> bool:
        """Return whether one of these topics is subscribed to."""
        return not topics.isdisjoint(self.topics)

    def changed_targets(
        self, computed: Mapping[str, Partitions], member_ids: Iterable[str]
    ) -> Iterator[tuple[str, Partitions]]:
        """Yield these members whose target is another one than before, each with what was computed for it."""
        for member_id in member_ids:
            target = computed.get(member_id, NO_PARTITIONS)
            old = self.targets.get(member_id)
            if old is None or not same_partitions(target, old):
                yield member_id, target
