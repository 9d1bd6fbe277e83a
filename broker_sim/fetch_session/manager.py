"""Creates, finds and closes the sessions of fetch requests; mirrors `kafka.server.FetchManager`.

A request names a session and an epoch:

    epoch 0           a full fetch that requests a new session; closes the named one
    epoch -1          a full fetch without a session; closes the named one
    any other epoch   an incremental fetch: only the changes since the previous request

The Fetch handler does the work of Kafka's four kinds of `FetchContext`.
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
        """`make_rng` is called for the first session, and returns the generator of session ids."""
        self.cache = FetchSessionCache(slots, make_rng)
        self._clock = clock

    def close(self, session_id: int) -> None:
        """Close the session, if there is one. Raises ApiError with UNKNOWN_SERVER_ERROR as `resume`."""
        if session_id != NO_SESSION:
            self.cache.shard_of(session_id).remove(session_id)

    def resume(self, session_id: int, epoch: int, *, uses_topic_ids: bool) -> FetchSession:
        """Return the session that an incremental fetch continues.

        Raises ApiError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
        FETCH_SESSION_TOPIC_ID_ERROR if the session was created with topic names and the request has
        topic ids or vice versa, UNKNOWN_SERVER_ERROR for an id outside all shards.
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
        """Begin the session's next epoch, after the changes of a request are applied.

        A session without partitions is closed instead, and False is returned.
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
        """Return the id of a new session, `NO_SESSION` if the cache is full."""
        return self.cache.next_shard().maybe_create_session(
            self._clock.now_ms(), partitions, privileged=privileged, uses_topic_ids=uses_topic_ids
        )
