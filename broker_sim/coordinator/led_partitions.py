"""The partitions of one internal topic that a broker leads, loaded or being loaded.

Mirrors what `CoordinatorRuntime` and `TransactionStateManager` have in common: a new leader loads a
partition from its log before it answers for it, and the old one drops it.

A partition that cannot be loaded (its log is offline, or damaged) is logged and failed: this broker is not its
coordinator until it leads it in a new epoch.

Deliberate difference: `TransactionStateManager` logs such an error and serves the ids that it has read so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from broker_sim.coordinator.hashing import partition_of_key
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from broker_sim.metadata import ImageChanges, MetadataImage
    from broker_sim.runtime.process import CallLater

__all__ = ["LedPartition", "LedPartitions", "PartitionOwner"]


log = get_logger(__name__)


class LedPartition(Protocol):
    """What a coordinator keeps for one partition that it leads."""

    leader_epoch: int


Part = TypeVar("Part", bound=LedPartition)


class PartitionOwner(Protocol[Part]):
    """The coordinator, which knows what a partition holds."""

    def load(self, partition: int, leader_epoch: int) -> Part:
        """Return what the partition's log holds."""

    def loaded(self, part: Part) -> None:
        """Begin to work with the partition, which can be found from now on."""

    def reelected(self, part: Part, leader_epoch: int) -> bool:
        """Go on in a new epoch of the same leader, and return True; False to have it loaded again."""

    def unloaded(self, part: Part) -> None:
        """Stop to work with the partition, which another broker leads now, or nobody."""


class LedPartitions(Generic[Part]):
    """Follows the roles of a broker in one topic. Thread rule: the broker's loop."""

    def __init__(
        self, topic: str, broker_id: int, call_later: CallLater, owner: PartitionOwner[Part]
    ) -> None:
        self._topic = topic
        self._broker_id = broker_id
        self._call_later = call_later
        self._owner = owner
        self._parts: dict[int, Part] = {}
        self._loading: dict[int, int] = {}
        """The leader epochs of the partitions that are being loaded."""
        self._failed: dict[int, int] = {}
        """The leader epochs in which partitions could not be loaded."""
        self._count: int | None = None
        """How many partitions there are, as far as keys are in them."""

    def partition_for(self, key: str, default_count: int) -> int:
        """Return the partition that a group or a transactional id is in.

        `default_count` is the number of partitions of a topic that is still to be created. As in Kafka,
        partitions that are added while a broker runs have no keys.
        """
        count = default_count if self._count is None else self._count
        return partition_of_key(key, count)

    def find(self, key: str, default_count: int) -> Part:
        """Return the partition that a key is in. Raises `ApiError` as `get` does."""
        count = default_count if self._count is None else self._count
        partition = partition_of_key(key, count)
        part = self._parts.get(partition)
        return self.get(partition) if part is None else part

    def get(self, partition: int) -> Part:
        """Return the partition. Raises `ApiError`: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR."""
        part = self._parts.get(partition)
        if part is None:
            raise ApiError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                if partition in self._loading
                else ErrorCode.NOT_COORDINATOR
            )
        return part

    def loaded(self) -> list[Part]:
        """Return the partitions that are loaded, by their numbers."""
        return [part for _, part in sorted(self._parts.items())]

    @property
    def is_loading(self) -> bool:
        """Whether a partition is being loaded."""
        return bool(self._loading)

    def elected(self, partition: int, leader_epoch: int) -> None:
        """Begin to load the partition, which this broker leads in a new epoch."""
        part = self._parts.get(partition)
        if part is not None:
            if part.leader_epoch >= leader_epoch or self._owner.reelected(part, leader_epoch):
                return
            self.resigned(partition)
        elif self._failed.get(partition, -1) >= leader_epoch:
            return
        self._loading[partition] = leader_epoch
        self._call_later(0, self._load, partition, leader_epoch)

    def _load(self, partition: int, leader_epoch: int) -> None:
        if self._loading.get(partition) != leader_epoch:
            return  # resigned or elected again meanwhile
        del self._loading[partition]
        try:
            part = self._owner.load(partition, leader_epoch)
        except (ApiError, ValueError) as error:  # an unreadable log, a record not understood
            self._load_failed(partition, leader_epoch, error)
            return
        self._parts[partition] = part
        self._owner.loaded(part)

    def _load_failed(self, partition: int, leader_epoch: int, error: Exception) -> None:
        self._failed[partition] = leader_epoch
        log.error(
            "coordinator_load_failed",
            node=f"broker-{self._broker_id}",
            topic=self._topic,
            partition=partition,
            leader_epoch=leader_epoch,
            why=repr(error),
        )

    def resigned(self, partition: int) -> None:
        """Drop the partition, which this broker does not lead any more."""
        self._loading.pop(partition, None)
        self._failed.pop(partition, None)
        part = self._parts.pop(partition, None)
        if part is not None:
            self._owner.unloaded(part)

    def reload(self, partition: int) -> None:
        """Load the partition again: its state has what is not in the log."""
        part = self._parts.get(partition)
        if part is not None:
            log.info(
                "coordinator_reloaded",
                node=f"broker-{self._broker_id}",
                topic=self._topic,
                partition=partition,
                why="records could not be appended",
            )
            self.resigned(partition)
            self.elected(partition, part.leader_epoch)

    def follow(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Take the roles of new metadata."""
        topic = image.topics.get(self._topic)
        if topic is None:
            self._count = None
        elif self._count is None:
            self._count = len(topic.partitions)
        for topic in changes.deleted_topics:
            if topic.name == self._topic:
                for partition in range(len(topic.partitions)):
                    self.resigned(partition)
        for key, _, state in changes.partitions:
            if key.topic == self._topic:
                if state.leader == self._broker_id:
                    self.elected(key.partition, state.leader_epoch)
                else:
                    self.resigned(key.partition)

    def drop_all(self) -> list[Part]:
        """Forget everything without a word, as a broker that dies; returns what was loaded."""
        self._loading.clear()
        self._failed.clear()
        parts = self.loaded()
        self._parts.clear()
        return parts
