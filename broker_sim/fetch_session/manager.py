"""The session that a fetch belongs to; mirrors `kafka.server.FetchManager`.

A request names a session and an epoch:

    epoch 0           a full fetch, which wants a new session; ends the named one
    epoch -1          a full fetch without a session; ends the named one
    any other epoch   an incremental fetch: what has changed since the request before it

Kafka's four kinds of `FetchContext` are what the Fetch handler does in these cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.fetch_session.cache import FetchSessionCache
from broker_sim.fetch_session.session import NO_SESSION, next_epoch

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from broker_sim_purgatory import Clock

    from broker_sim.fetch_session.session import CachedPartition, FetchSession


class FetchManager:
    """The sessions of one broker. Thread rule: the broker's loop."""

    def __init__(self, clock: Clock, slots: int, make_rng: Callable[[], random.Random]) -> None:
        """`make_rng` makes the chance that ids are drawn by, when the first session is made."""
        self.cache = FetchSessionCache(slots, make_rng)
        self._clock = clock

    def find(self, session_id: int) -> FetchSession | None:
        """Return the session of this id, whichever its epoch is; None if there is none."""
        return None if session_id == NO_SESSION else self.cache.find(session_id)

    def close(self, session_id: int) -> None:
        """End the session, if there is one. Raises ApiError with UNKNOWN_SERVER_ERROR as `resume`."""
        if session_id != NO_SESSION:
            self.cache.shard_of(session_id).remove(session_id)

    def resume(self, session_id: int, epoch: int, *, uses_topic_ids: bool) -> FetchSession:
        """Return the session that an incremental fetch continues.

        Raises ApiError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
        FETCH_SESSION_TOPIC_ID_ERROR where the session was made with names and this request has ids
        or the other way round, UNKNOWN_SERVER_ERROR for an id that no session can have.
        """
        session = self.cache.shard_of(session_id).sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids is not uses_topic_ids:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return session

    def advance(self, session: FetchSession) -> bool:
        """Begin the session's next epoch after it has taken the changes of a request.

        A session without partitions ends instead, and False is returned.
        """
        shard = self.cache.shard_of(session.session_id)
        if not session.partitions:
            shard.remove(session.session_id)
            return False
        shard.touch(session, self._clock.now_ms())
        session.epoch = next_epoch(session.epoch)
        return True

    def maybe_create_session(
        self,
        partitions: Sequence[CachedPartition],
        *,
        privileged: bool,
        uses_topic_ids: bool,
    ) -> int:
        """Return the id of a new session, `NO_SESSION` if there is no room for one."""
        return self.cache.next_shard().maybe_create_session(
            self._clock.now_ms(), partitions, privileged=privileged, uses_topic_ids=uses_topic_ids
        )
