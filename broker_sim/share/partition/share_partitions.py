"""The share partitions that a broker serves; mirrors `SharePartitionCache`.

A share partition is created, and its state is read, on the first fetch. It is removed when the broker resigns as
leader, when the share coordinator fences it, or when the last connection with sessions of its group is lost.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.share.partition.share_partition import SharePartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.errors import ApiError
    from broker_sim.metadata.topic_partition import TopicIdPartition, TopicPartition
    from broker_sim.replica.metadata_applier import PartitionListeners
    from broker_sim.share.partition.share_fetch import ShareFetch
    from broker_sim.share.partition.share_partition import SharePartitionEnvironment
    from broker_sim.share.share_state import SharePartitionKey

_FENCING: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""Errors after which this broker no longer owns a share partition."""
MAX_SEPARATE_TRIES: Final = 64
"""Maximum number of partitions of a share fetch that is tried after each share partition is initialized.

A fetch with more partitions is tried once per response of the share coordinator.
"""


class SharePartitions:
    """Share partitions by key and by group. Thread rule: the broker's loop."""

    def __init__(self, environment: SharePartitionEnvironment, listeners: PartitionListeners) -> None:
        """Register with `listeners` to learn when the broker resigns as partition leader."""
        self.environment = environment
        self._listeners = listeners
        self._listener_of: dict[SharePartitionKey, Callable[[], object]] = {}
        self._groups: dict[str, dict[SharePartitionKey, None]] = {}
        self._partitions: dict[SharePartitionKey, SharePartition] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[SharePartition]:
        return iter(self._partitions.values())

    def get(self, key: SharePartitionKey) -> SharePartition | None:
        """Return the share partition, None if it is not served."""
        return self._partitions.get(key)

    def get_or_create(self, key: SharePartitionKey, topic_partition: TopicPartition) -> SharePartition:
        """Return the share partition; create it if needed. Raises as `LogReader.leader_partition`."""
        share_partition = self._partitions.get(key)
        if share_partition is None:
            leader_epoch = self.environment.reader.leader_partition(topic_partition).leader_epoch
            share_partition = SharePartition(key, topic_partition, leader_epoch, self.environment)
            self._partitions[key] = share_partition
            self._groups.setdefault(key.group_id, {})[key] = None
            listener = self._listener_of[key] = partial(self.remove, key)
            self._listeners.add(topic_partition, listener)
        return share_partition

    def initialize(self, share_partition: SharePartition, fetch: ShareFetch, partition: TopicIdPartition) -> None:
        """Read the state of a new share partition; the fetch waits for it.

        The fetch is tried after this share partition gets its state, before the next one in the same response.
        """
        is_waiting = False

        def done(error: ApiError | None) -> None:
            if error is not None and error.error_code is not ErrorCode.LEADER_NOT_AVAILABLE:
                self.remove(share_partition.key)
                fetch.add_erroneous([partition], error)
            if not is_waiting:
                return
            if len(fetch.partitions) <= MAX_SEPARATE_TRIES:
                self.environment.waiting_fetches.complete(share_partition.key)
            else:
                self.environment.waiting_fetches.announce(share_partition.key)

        share_partition.maybe_initialize(done)
        is_waiting = True

    def remove(self, key: SharePartitionKey) -> None:
        """Stop serving the share partition, and fence it for waiting fetches."""
        share_partition = self._partitions.pop(key, None)
        if share_partition is None:
            return
        keys = self._groups[key.group_id]
        del keys[key]
        if not keys:
            del self._groups[key.group_id]
        share_partition.mark_fenced()
        self._listeners.remove(share_partition.topic_partition, self._listener_of.pop(key))
        self.environment.waiting_fetches.announce_to_all_groups(key)

    def remove_group(self, group_id: str) -> None:
        """Stop serving all share partitions of a group."""
        for key in list(self._groups.get(group_id, ())):
            self.remove(key)

    def remove_all(self) -> None:
        """Stop serving all share partitions."""
        for key in list(self._partitions):
            self.remove(key)

    def handle_error(self, key: SharePartitionKey, error: ApiError) -> None:
        """Stop serving the share partition if the error means that this broker no longer owns it."""
        if error.error_code in _FENCING:
            self.remove(key)
