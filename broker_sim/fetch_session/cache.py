"""The fetch sessions of a broker, and the eviction of sessions when the cache is full.

Mirrors `FetchSession.FetchSessionCache` and `FetchSessionCacheShard`. The slots are divided among eight
shards, which get new sessions round-robin; a session id identifies its shard. With fewer than eight
slots there are no sessions at all.

A full shard makes room for a new session by evicting

* the least recently used session, if it has been idle for more than two minutes; otherwise
* the least valuable session, unless it is worth more than the new one: followers rank above consumers,
  then more partitions above fewer. A consumer's session younger than two minutes is evicted only for
  a follower, a follower's young session never.

Deliberate difference: a shard scans its sessions for the one to evict, Kafka keeps sorted trees. A shard
has some hundred sessions, and scans only when it is full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.fetch_session.session import NO_SESSION, FetchSession

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from broker_sim.fetch_session.session import CachedPartition

MIN_EVICTION_MS: Final = 120_000
"""Kafka's `min.incremental.fetch.session.eviction.ms`, which cannot be configured."""
SHARD_COUNT: Final = 8
_MAX_INT: Final = (1 << 31) - 1


class FetchSessionCacheShard:
    """Sessions with ids from `first_id` (inclusive) to `end_id` (exclusive)."""

    def __init__(self, max_entries: int, first_id: int, end_id: int, choose_id: Callable[[int, int], int]) -> None:
        """`choose_id(first_id, end_id)` returns a random id in the range."""
        self.sessions: dict[int, FetchSession] = {}
        self.partition_count = 0
        """Number of partitions in all sessions."""
        self.evictions = 0
        """Number of evicted sessions."""
        self._max_entries = max_entries
        self._first_id = max(first_id, NO_SESSION + 1)
        self._end_id = end_id
        self._choose_id = choose_id

    def maybe_create_session(
        self,
        now_ms: int,
        partitions: Sequence[CachedPartition],
        *,
        privileged: bool,
        uses_topic_ids: bool,
    ) -> int:
        """Return the id of a new session with these partitions, `NO_SESSION` if none can be evicted for it."""
        if len(self.sessions) >= self._max_entries and not self._try_evict(privileged, len(partitions), now_ms):
            return NO_SESSION
        session = FetchSession(
            self._new_id(), partitions, privileged=privileged, uses_topic_ids=uses_topic_ids, now_ms=now_ms
        )
        self.sessions[session.session_id] = session
        self.touch(session, now_ms)
        return session.session_id

    def _new_id(self) -> int:
        while True:
            session_id = self._choose_id(self._first_id, self._end_id)
            if session_id not in self.sessions:
                return session_id

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """Update the session's time of last use, and count its current partitions."""
        session.last_used_ms = now_ms
        self.partition_count += len(session) - session.cached_size
        session.cached_size = len(session)
        is_old = now_ms - session.creation_ms > MIN_EVICTION_MS
        session.evictable_by_all = is_old
        session.evictable_by_privileged = is_old or not session.privileged

    def remove(self, session_id: int) -> None:
        """Remove the session with that id, if there is one."""
        session = self.sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= session.cached_size

    def _try_evict(self, privileged: bool, size: int, now_ms: int) -> bool:
        """Evict a session for a new one with `size` partitions; return False if none may be evicted."""
        if not self.sessions:
            return False
        stalest = min(self.sessions.values(), key=lambda s: (s.last_used_ms, s.session_id))
        if now_ms - stalest.last_used_ms > MIN_EVICTION_MS:
            victim = stalest
        else:
            evictable = [
                session
                for session in self.sessions.values()
                if (session.evictable_by_privileged if privileged else session.evictable_by_all)
            ]
            if not evictable:
                return False
            victim = min(evictable, key=_value)
            if (privileged, size, NO_SESSION) < _value(victim):
                return False
        self.remove(victim.session_id)
        self.evictions += 1
        return True


def _value(session: FetchSession) -> tuple[bool, int, int]:
    """Return the sort key of a session's value; mirrors `EvictableKey`."""
    return (session.privileged, session.cached_size, session.session_id)


class FetchSessionCache:
    """All shards of a broker's session cache. Thread rule: the broker's loop."""

    def __init__(self, slots: int, make_rng: Callable[[], random.Random]) -> None:
        """`make_rng` is called for the first session, when the broker is registered."""
        self._id_range = _MAX_INT // SHARD_COUNT
        self._shards = [
            FetchSessionCacheShard(
                slots // SHARD_COUNT, number * self._id_range, (number + 1) * self._id_range, self._choose_id
            )
            for number in range(SHARD_COUNT)
        ]
        self._next = 0
        self._make_rng = make_rng
        self._rng: random.Random | None = None

    def _choose_id(self, first_id: int, end_id: int) -> int:
        if self._rng is None:
            self._rng = self._make_rng()
        return self._rng.randrange(first_id, end_id)

    def shard_of(self, session_id: int) -> FetchSessionCacheShard:
        """Return the shard for a session id.

        Raises ApiError with UNKNOWN_SERVER_ERROR for an id outside all shards, as Kafka does.
        """
        number = abs(session_id) // self._id_range
        if number >= (SHARD_COUNT if session_id >= 0 else 1):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return self._shards[number]

    def find(self, session_id: int) -> FetchSession | None:
        """Return the session with this id, at any epoch; None if there is none."""
        for shard in self._shards:
            if session_id in shard.sessions:
                return shard.sessions[session_id]
        return None

    def next_shard(self) -> FetchSessionCacheShard:
        """Return the shard for the next new session."""
        shard = self._shards[self._next]
        self._next = (self._next + 1) % SHARD_COUNT
        return shard

    @property
    def session_count(self) -> int:
        """Number of sessions; Kafka's `NumIncrementalFetchSessions`."""
        return sum(len(shard.sessions) for shard in self._shards)

    @property
    def partition_count(self) -> int:
        """Number of partitions in all sessions; Kafka's `NumIncrementalFetchPartitionsCached`."""
        return sum(shard.partition_count for shard in self._shards)

    @property
    def evictions(self) -> int:
        """Number of evicted sessions; the count of Kafka's `IncrementalFetchSessionEvictionsPerSec`."""
        return sum(shard.evictions for shard in self._shards)
