"""Applies new metadata to the hosted partitions; mirrors `ReplicaManager.applyDelta`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.log import suppress_storage_error
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.metadata.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.config import TopicConfig
    from broker_sim.log import LogManager
    from broker_sim.metadata import ImageChanges, MetadataImage, PartitionState, TopicState
    from broker_sim.replica.fetcher import FetcherManager
    from broker_sim.replica.partition import Partition
    from broker_sim.replica.replica_manager import ReplicaManager

    Listener = Callable[[], object]


class PartitionListeners:
    """Callbacks for partitions that this broker no longer leads; mirrors `PartitionListener` and its calls.

    A callback stays registered until it or its partition is removed.
    """

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: dict[TopicPartition, list[Listener]] = {}

    def add(self, key: TopicPartition, listener: Listener) -> None:
        """Call `listener()` when the broker becomes a follower, deletes the partition, or its log fails."""
        self._listeners.setdefault(key, []).append(listener)

    def remove(self, key: TopicPartition, listener: Listener) -> None:
        """Remove the listener; does nothing if it is not registered."""
        listeners = self._listeners.get(key)
        if listeners is not None and listener in listeners:
            listeners.remove(listener)
            if not listeners:
                del self._listeners[key]

    def became_follower(self, key: TopicPartition) -> None:
        """Call the partition's listeners: the broker is now a follower."""
        for listener in tuple(self._listeners.get(key, ())):
            listener()

    def removed(self, key: TopicPartition) -> None:
        """Call the partition's listeners and drop them: the broker no longer hosts it."""
        for listener in self._listeners.pop(key, ()):
            listener()


class MetadataApplier:
    """Makes one broker's partitions leaders or followers and deletes them, following the metadata."""

    def __init__(
        self,
        broker_id: int,
        replica_manager: ReplicaManager,
        fetchers: FetcherManager,
        logs: LogManager,
        topic_config: Callable[[TopicState], TopicConfig],
        open_partition: Callable[[TopicPartition, TopicState], Partition],
    ) -> None:
        """`open_partition` returns the partition on its log, which may have survived a restart; raises `ApiError`."""
        self._broker_id = broker_id
        self._replica_manager = replica_manager
        self._fetchers = fetchers
        self._logs = logs
        self._topic_config = topic_config
        self._open_partition = open_partition
        self.listeners = PartitionListeners()
        """Callbacks for partitions that this broker no longer leads."""
        self._in_controlled_shutdown = False

    def begin_controlled_shutdown(self) -> None:
        """From now on, stop following partitions once the controller takes this broker out of their ISR."""
        self._in_controlled_shutdown = True

    def apply(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Apply deletions first, then leaders before followers, then configurations."""
        for topic in changes.deleted_topics:
            for number, state in enumerate(topic.partitions):
                if self._broker_id in state.replicas:
                    self._delete(TopicPartition(topic.name, number))
        self._apply_roles(changes, image)
        self._fetchers.shutdown_idle_fetchers()
        if changes.broker_configs_changed:
            self._reconfigure(image.topics.values())
        else:
            self._reconfigure(changes.topics_with_new_configs)
        for key, _, _ in changes.partitions:
            self._replica_manager.purgatories.elect_leader.check_and_complete(key)

    def _apply_roles(self, changes: ImageChanges, image: MetadataImage) -> None:
        followers: list[tuple[TopicPartition, TopicState, PartitionState]] = []
        for key, topic, state in changes.partitions:
            if self._broker_id not in state.replicas:
                if key in self._replica_manager.partitions or key in self._replica_manager.offline_partitions:
                    self._delete(key)
            elif state.leader == self._broker_id:
                self._fetchers.unfollow(key)
                with suppress_storage_error():
                    self._get_or_open(key, topic).make_leader(state)
            else:
                followers.append((key, topic, state))
        for key, topic, state in followers:
            with suppress_storage_error():
                self._make_follower(key, topic, state, image)

    def take_offline(self, key: TopicPartition) -> None:
        """Stop leading or following a partition whose log has failed; its delayed operations complete."""
        partition = self._remove(key)
        self._complete_without(key, partition)

    def _get_or_open(self, key: TopicPartition, topic: TopicState) -> Partition:
        partition = self._replica_manager.partitions.get(key)
        if partition is None:
            partition = self._open_partition(key, topic)
            self._replica_manager.partitions[key] = partition
        return partition

    def _make_follower(
        self, key: TopicPartition, topic: TopicState, state: PartitionState, image: MetadataImage
    ) -> None:
        partition = self._get_or_open(key, topic)
        is_new_epoch = partition.make_follower(state)
        stops = self._in_controlled_shutdown and self._broker_id not in state.isr
        if not is_new_epoch and not stops:
            return
        self._fetchers.unfollow(key)
        if not stops:
            self.listeners.became_follower(key)
            if image.alive_broker(state.leader) is not None:
                self._fetchers.follow(partition)
        self._complete_without(key, partition)

    def _delete(self, key: TopicPartition) -> None:
        partition = self._remove(key)
        if partition is not None or key in self._replica_manager.offline_partitions:
            self._logs.delete(key)
        self._complete_without(key, partition)

    def _remove(self, key: TopicPartition) -> Partition | None:
        """Stop leading or following the partition; return it if it was hosted."""
        self._fetchers.unfollow(key)
        partition = self._replica_manager.partitions.pop(key, None)
        if partition is not None:
            partition.replica_states.clear()
            self.listeners.removed(key)
        return partition

    def _complete_without(self, key: TopicPartition, partition: Partition | None) -> None:
        """Try the operations that wait for a partition that this broker does not lead."""
        topic_id = NO_TOPIC_ID if partition is None else partition.topic_id
        self._replica_manager.purgatories.check_and_complete_not_leader(key, topic_id)

    def _reconfigure(self, topics: Iterable[TopicState]) -> None:
        for topic in topics:
            config = self._topic_config(topic)
            for number in range(len(topic.partitions)):
                partition = self._replica_manager.partitions.get(TopicPartition(topic.name, number))
                if partition is not None:
                    partition.reconfigure(config)
