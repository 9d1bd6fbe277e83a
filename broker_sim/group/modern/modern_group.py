"""A group whose members subscribe to topics and are assigned partitions; mirrors `ModernGroup`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from broker_sim.group.modern.assigned_group import AssignedGroup
from broker_sim.group.modern.assignment import Partitions
from broker_sim.group.modern.topic_counts import TopicCounts

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

__all__ = ["ModernGroup"]

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
