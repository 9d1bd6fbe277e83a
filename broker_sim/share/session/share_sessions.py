"""The share sessions of a broker; mirrors `ShareSessionCache` and `SharePartitionManager.newContext`.

A request names its session by group and member, and says by its epoch what it does with the session:

    epoch 0           begins a session, in the place of one that the member may have
    epoch -1          ends the session, after what it acknowledges
    any other epoch   goes on: what has changed since the request before it

A session ends when its member ends it, or when the connection is lost on which it was made. A member that begins
a new session on another connection has one that does not end with the old connection: that one is stale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from broker_sim.share.session.share_session import ShareFetchContext, ShareSession, ShareSessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from broker_sim.metadata.topic_partition import TopicIdPartition


class SessionConnection(Protocol):
    """The connection of a member."""

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Call `callback()` once, in the broker's process, when the client has gone."""


class _SessionOfConnection:
    """The last session that was made on a connection; stale when it has ended before."""

    __slots__ = ("is_stale", "key")

    def __init__(self, key: ShareSessionKey) -> None:
        self.key = key
        self.is_stale = False


class ShareSessions:
    """All sessions, at most `max_sessions`. Thread rule: the broker's loop."""

    def __init__(
        self,
        max_sessions: int,
        *,
        on_member_leave: Callable[[ShareSessionKey], object],
        on_group_empty: Callable[[str], object],
    ) -> None:
        """Two callbacks follow a lost connection: with the session that ends, and with a group without sessions."""
        self.partition_count = 0
        """Partitions of all sessions; Kafka's `SharePartitionsCount`."""
        self.evictions = 0
        """Sessions that ended with their connection; Kafka's `ShareSessionEvictionsPerSec` counts them."""
        self._on_member_leave = on_member_leave
        self._on_group_empty = on_group_empty
        self._max_sessions = max_sessions
        self._sessions: dict[ShareSessionKey, ShareSession] = {}
        self._session_counts: dict[str, int] = {}
        """Number of sessions by group."""
        self._by_connection: dict[object, _SessionOfConnection] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: ShareSessionKey) -> ShareSession | None:
        """Return the session of a member, None without one."""
        return self._sessions.get(key)

    # -- requests -------------------------------------------------------------------------------

    def new_context(
        self,
        key: ShareSessionKey,
        epoch: int,
        added: Sequence[TopicIdPartition],
        forgotten: Sequence[TopicIdPartition],
        connection: SessionConnection,
        *,
        has_acknowledgements: bool,
    ) -> ShareFetchContext:
        """Begin the session of a share fetch, go on with it or end it.

        Raises ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, INVALID_REQUEST for
        acknowledgements in the first request, SHARE_SESSION_LIMIT_REACHED, and UNKNOWN_SERVER_ERROR, as Kafka
        does, for a first request that names a partition twice.
        """
        if epoch == INITIAL_EPOCH:
            if has_acknowledgements:
                raise ApiError(ErrorCode.INVALID_REQUEST)
            self.remove(key)
            if len({partition[:2] for partition in added}) < len(added):
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            if not self._maybe_create_session(key, added, connection):
                raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
            return ShareFetchContext(epoch, added)
        session = self._find(key)
        if epoch == FINAL_EPOCH:
            return ShareFetchContext(epoch, ())
        if session.epoch != epoch:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.update(added, forgotten)
        self._update_partition_count(session)
        session.epoch = next_epoch(epoch)
        return ShareFetchContext(epoch, list(session), session)

    def acknowledge_update(self, key: ShareSessionKey, epoch: int) -> None:
        """Go on with the session of a request that only acknowledges; the last request leaves it as it is.

        Raises ApiError: INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND.
        """
        if epoch == INITIAL_EPOCH:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = self._find(key)
        if epoch == FINAL_EPOCH:
            return
        if session.epoch != epoch:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)

    def _find(self, key: ShareSessionKey) -> ShareSession:
        session = self._sessions.get(key)
        if session is None:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    # -- begin and end of sessions --------------------------------------------------------------

    def _maybe_create_session(
        self, key: ShareSessionKey, partitions: Iterable[TopicIdPartition], connection: SessionConnection
    ) -> bool:
        """Begin a session with its first request; return False if there is no room."""
        if len(self._sessions) >= self._max_sessions:
            return False
        session = ShareSession(key, partitions, connection)
        self._sessions[key] = session
        self._update_partition_count(session)
        self._session_counts[key.group_id] = self._session_counts.get(key.group_id, 0) + 1
        if connection not in self._by_connection:
            connection.when_lost(lambda: self._connection_lost(connection))
        self._by_connection[connection] = _SessionOfConnection(key)
        return True

    def _update_partition_count(self, session: ShareSession) -> None:
        """Count the partitions that the session has now."""
        self.partition_count += len(session) - session.cached_size
        session.cached_size = len(session)

    def remove(self, key: ShareSessionKey) -> list[TopicIdPartition]:
        """End the session of a member; return its partitions, none without a session."""
        session = self._sessions.pop(key, None)
        if session is None:
            return []
        self.partition_count -= session.cached_size
        self._session_counts[key.group_id] -= 1
        if not self._session_counts[key.group_id]:
            del self._session_counts[key.group_id]
        of_connection = self._by_connection.get(session.connection)
        if of_connection is not None:
            of_connection.is_stale = True
        return list(session)

    def remove_all(self) -> None:
        """End all sessions: the cluster has no share groups any more."""
        self._sessions.clear()
        self._session_counts.clear()
        self.partition_count = 0

    def _connection_lost(self, connection: SessionConnection) -> None:
        """End the session of a client that has gone; its group may be without sessions now."""
        of_connection = self._by_connection.pop(connection)
        key = of_connection.key
        if not of_connection.is_stale and key in self._sessions:
            self.evictions += 1
            self._on_member_leave(key)
            self.remove(key)
        if key.group_id not in self._session_counts:
            self._on_group_empty(key.group_id)
