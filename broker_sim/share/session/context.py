"""Which session a share fetch belongs to; mirrors `ShareFetchContext` and `SharePartitionManager.newContext`.

epoch 0           begins a session, in the place of one that the member may have
epoch -1          ends the session, after what it acknowledges
any other epoch   goes on: what has changed since the request before it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, next_epoch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.metadata.topic_partition import TopicIdPartition
    from broker_sim.share.session.cache import SessionConnection, ShareSessionCache
    from broker_sim.share.session.session import ShareSession, ShareSessionKey


class PartitionAnswer(Protocol):
    """What is answered of one partition."""

    @property
    def has_records(self) -> bool:
        """Whether there are records in it."""

    @property
    def has_error(self) -> bool:
        """Whether it is an error of the fetch."""


Answer = TypeVar("Answer", bound=PartitionAnswer)


class ShareFetchContext:
    """What one request fetches. A request that ends its session fetches nothing."""

    __slots__ = ("_epoch", "_session", "partitions")

    def __init__(self, epoch: int, partitions: Sequence[TopicIdPartition], session: ShareSession | None = None) -> None:
        """`session` is the one that the request goes on with, None if it begins or ends one."""
        self._epoch = epoch
        self._session = session
        self.partitions = partitions

    @property
    def has_moved_on(self) -> bool:
        """Whether another request has continued the session since this one was taken."""
        return self._session is not None and self._session.epoch != next_epoch(self._epoch)

    def news(self, answers: Mapping[TopicIdPartition, Answer]) -> dict[TopicIdPartition, Answer]:
        """Return those answers that the member must be told of."""
        session = self._session
        if session is None:
            return dict(answers)
        return {
            partition: answer
            for partition, answer in answers.items()
            if session.find(partition).has_news(has_records=answer.has_records, has_error=answer.has_error)
        }

    def update(self, answers: Mapping[TopicIdPartition, Answer]) -> dict[TopicIdPartition, Answer]:
        """Return the same, and note in the session that the member is told."""
        session = self._session
        if session is None:
            return dict(answers)
        told: dict[TopicIdPartition, Answer] = {}
        for partition, answer in answers.items():
            cached = session.find(partition)
            if cached.update_response_data(has_records=answer.has_records, has_error=answer.has_error):
                told[partition] = answer
                if answer.has_records:
                    session.move_to_end(partition)
        return told


class ShareSessions:
    """Finds the session of a request. Thread rule: the broker's loop."""

    def __init__(self, cache: ShareSessionCache) -> None:
        self.cache = cache

    def new_context(
        self,
        key: ShareSessionKey,
        epoch: int,
        asked: Sequence[TopicIdPartition],
        forgotten: Sequence[TopicIdPartition],
        connection: SessionConnection,
        *,
        has_acknowledgements: bool,
    ) -> ShareFetchContext:
        """Begin a session, or go on with one.

        Raises ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, INVALID_REQUEST for
        acknowledgements in the first request, SHARE_SESSION_LIMIT_REACHED, and UNKNOWN_SERVER_ERROR, as Kafka
        does, for a first request that names a partition twice.
        """
        cache = self.cache
        if epoch == INITIAL_EPOCH:
            if has_acknowledgements:
                raise ApiError(ErrorCode.INVALID_REQUEST)
            cache.remove(key)
            if len({partition[:2] for partition in asked}) < len(asked):
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            if not cache.maybe_create_session(key, asked, connection):
                raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
            return ShareFetchContext(epoch, asked)
        session = cache.get(key)
        if session is None:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch == FINAL_EPOCH:
            return ShareFetchContext(epoch, ())
        if session.epoch != epoch:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.update(asked, forgotten)
        cache.update_partition_count(session)
        session.epoch = next_epoch(epoch)
        return ShareFetchContext(epoch, list(session), session)

    def acknowledge_update(self, key: ShareSessionKey, epoch: int) -> None:
        """Take a request that only acknowledges; the last one of a session leaves it as it is.

        Raises ApiError: INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND.
        """
        if epoch == INITIAL_EPOCH:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = self.cache.get(key)
        if session is None:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch == FINAL_EPOCH:
            return
        if session.epoch != epoch:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)
