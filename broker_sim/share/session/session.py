"""The partitions that one member fetches; mirrors `ShareSession` and `CachedSharePartition`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.fetch_session import INITIAL_EPOCH, next_epoch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim.metadata.topic_partition import TopicIdPartition


class ShareSessionKey(NamedTuple):
    """Names a share session: a member has one with each broker."""

    group_id: str
    member_id: str


class CachedSharePartition:
    """A partition of a session; it must be told of when it is new, and after an error."""

    __slots__ = ("partition", "requires_update_in_response")

    def __init__(self, partition: TopicIdPartition, *, requires_update_in_response: bool = False) -> None:
        self.partition = partition
        self.requires_update_in_response = requires_update_in_response

    def has_news(self, *, has_records: bool, has_error: bool) -> bool:
        """Whether the member must be told."""
        return has_records or has_error or self.requires_update_in_response

    def update_response_data(self, *, has_records: bool, has_error: bool) -> bool:
        """Take what is answered now; return whether the member must be told."""
        has_news = self.has_news(has_records=has_records, has_error=has_error)
        self.requires_update_in_response = has_error
        return has_news


class ShareSession:
    """The partitions in the order in which they are fetched; one that had records goes to the end.

    Thread rule: the broker's loop.
    """

    __slots__ = ("cached_size", "connection", "epoch", "key", "partitions")

    def __init__(self, key: ShareSessionKey, partitions: Iterable[TopicIdPartition], connection: object) -> None:
        self.key = key
        self.partitions = {one[:2]: CachedSharePartition(one) for one in partitions}
        """By topic id and number: the name of a topic is not known while no topic has its id."""
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.connection = connection
        """The session ends with it."""
        self.cached_size = 0
        """How many partitions it had when the cache last counted."""

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[TopicIdPartition]:
        return (cached.partition for cached in self.partitions.values())

    def update(self, asked: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        """Add what a request asks for, unless it is there, and forget what it no longer wants."""
        for partition in asked:
            key = partition[:2]
            if key not in self.partitions:
                self.partitions[key] = CachedSharePartition(partition, requires_update_in_response=True)
        for partition in forgotten:
            self.partitions.pop(partition[:2], None)

    def find(self, partition: TopicIdPartition) -> CachedSharePartition:
        """Return what is known of a partition of the session."""
        return self.partitions[partition[:2]]

    def move_to_end(self, partition: TopicIdPartition) -> None:
        """Let all other partitions be fetched before this one."""
        key = partition[:2]
        self.partitions[key] = self.partitions.pop(key)
