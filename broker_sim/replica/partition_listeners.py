"""Who is told that this broker leads a partition no more; mirrors `PartitionListener` and its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.metadata.topic_partition import TopicPartition

    Listener = Callable[[], object]


class PartitionListeners:
    """Callbacks by partition. They stay until they are removed, or the partition is."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: dict[TopicPartition, list[Listener]] = {}

    def add(self, key: TopicPartition, listener: Listener) -> None:
        """Call `listener()` when the broker follows the partition, deletes it, or its log fails."""
        self._listeners.setdefault(key, []).append(listener)

    def remove(self, key: TopicPartition, listener: Listener) -> None:
        """Call it no more, if it is called yet."""
        listeners = self._listeners.get(key)
        if listeners is not None and listener in listeners:
            listeners.remove(listener)
            if not listeners:
                del self._listeners[key]

    def became_follower(self, key: TopicPartition) -> None:
        """Tell that the broker follows the partition now."""
        for listener in tuple(self._listeners.get(key, ())):
            listener()

    def removed(self, key: TopicPartition) -> None:
        """Tell that the partition is here no more."""
        for listener in self._listeners.pop(key, ()):
            listener()
