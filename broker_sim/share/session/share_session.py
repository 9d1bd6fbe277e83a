"""The share session of one member, and the partitions that one of its requests fetches.

Mirrors `ShareSession`, `CachedSharePartition` and `ShareFetchContext`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from broker_sim.fetch_session import INITIAL_EPOCH, next_epoch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from broker_sim.metadata.topic_partition import TopicIdPartition


class PartitionAnswer(Protocol):
    """The answer for one partition of a share fetch."""

    @property
    def has_records(self) -> bool:
        """Whether the answer has records."""

    @property
    def has_error(self) -> bool:
        """Whether the answer is an error of the fetch."""


Answer = TypeVar("Answer", bound=PartitionAnswer)


class ShareSessionKey(NamedTuple):
    """Key of a share session; a member has one session with each broker."""

    group_id: str
    member_id: str


class CachedSharePartition:
    """A partition of a session; responses must include a new one, and one after an error."""

    __slots__ = ("partition", "requires_update_in_response")

    def __init__(self, partition: TopicIdPartition, *, requires_update_in_response: bool = False) -> None:
        self.partition = partition
        self.requires_update_in_response = requires_update_in_response

    def is_in_response(self, answer: PartitionAnswer) -> bool:
        """Whether the response must include the partition with this answer."""
        return answer.has_records or answer.has_error or self.requires_update_in_response

    def update_response_data(self, answer: PartitionAnswer) -> bool:
        """Store the answer; return whether the response must include the partition."""
        is_in_response = self.is_in_response(answer)
        self.requires_update_in_response = answer.has_error
        return is_in_response


class ShareSession:
    """A member's partitions in fetch order; one that returned records moves to the end.

    Thread rule: the broker's loop.
    """

    __slots__ = ("cached_size", "connection", "epoch", "key", "partitions")

    def __init__(self, key: ShareSessionKey, partitions: Iterable[TopicIdPartition], connection: object) -> None:
        self.key = key
        self.partitions = {partition[:2]: CachedSharePartition(partition) for partition in partitions}
        """Partitions by topic id and number, because the topic name may be unknown."""
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.connection = connection
        """The connection on which the session was created; losing it closes the session."""
        self.cached_size = 0
        """Number of partitions that `ShareSessions.partition_count` includes for the session."""

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[TopicIdPartition]:
        return (cached.partition for cached in self.partitions.values())

    def update(self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        """Add partitions that are not yet in the session, and remove forgotten ones."""
        for partition in added:
            key = partition[:2]
            if key not in self.partitions:
                self.partitions[key] = CachedSharePartition(partition, requires_update_in_response=True)
        for partition in forgotten:
            self.partitions.pop(partition[:2], None)

    def find(self, partition: TopicIdPartition) -> CachedSharePartition:
        """Return a partition of the session. Raises KeyError if the session does not have it."""
        return self.partitions[partition[:2]]

    def move_to_end(self, partition: TopicIdPartition) -> None:
        """Move a partition behind all others."""
        key = partition[:2]
        self.partitions[key] = self.partitions.pop(key)


class ShareFetchContext:
    """The partitions that one request fetches, and the session that it continues.

    A request that closes its session fetches nothing.
    """

    __slots__ = ("_epoch", "_session", "partitions")

    def __init__(self, epoch: int, partitions: Sequence[TopicIdPartition], session: ShareSession | None = None) -> None:
        """`session` is the session that the request continues, None if it opens or closes one."""
        self._epoch = epoch
        self._session = session
        self.partitions = partitions

    @property
    def has_moved_on(self) -> bool:
        """Whether another request has continued the session since."""
        return self._session is not None and self._session.epoch != next_epoch(self._epoch)

    def in_response(self, answers: Mapping[TopicIdPartition, Answer]) -> dict[TopicIdPartition, Answer]:
        """Return the answers that the response must include."""
        session = self._session
        if session is None:
            return dict(answers)
        return {
            partition: answer for partition, answer in answers.items() if session.find(partition).is_in_response(answer)
        }

    def update(self, answers: Mapping[TopicIdPartition, Answer]) -> dict[TopicIdPartition, Answer]:
        """Return the answers that the response must include, and store in the session that they are sent."""
        session = self._session
        if session is None:
            return dict(answers)
        in_response: dict[TopicIdPartition, Answer] = {}
        for partition, answer in answers.items():
            if session.find(partition).update_response_data(answer):
                in_response[partition] = answer
                if answer.has_records:
                    session.move_to_end(partition)
        return in_response
