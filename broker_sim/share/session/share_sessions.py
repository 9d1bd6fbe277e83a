"""The share sessions of a broker; mirrors `ShareSessionCache` and `SharePartitionManager.newContext`.

A request names its session by group and member, and its epoch says what to do:

    epoch 0           open a session, replacing an existing one of the member
    epoch -1          close the session, after applying the request's acknowledgements
    any other epoch   continue the session with the changes since the previous request

A session closes when its member closes it, or when the connection on which it was opened is lost. If the member has
opened a new session on another connection, losing the old one does not close it: the old connection is stale.
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
        """Call `callback()` once, in the broker's process, when the client has disconnected."""


class _SessionOfConnection:
    """The last session opened on a connection; stale once that session is closed."""

    __slots__ = ("is_stale", "key")

    def __init__(self, key: ShareSessionKey) -> None:
        self.key = key
        self.is_stale = False


class ShareSessions:
    """All share sessions of a broker, at most `max_sessions`. Thread rule: the broker's loop."""

    def __init__(
        self,
        max_sessions: int,
        *,
        on_member_leave: Callable[[ShareSessionKey], object],
        on_group_empty: Callable[[str], object],
    ) -> None:
        """After a lost connection, `on_member_leave` gets its session, `on_group_empty` a group without sessions."""
        self.partition_count = 0
        """Number of partitions in all sessions; Kafka's `SharePartitionsCount`."""
        self.evictions = 0
        """Number of sessions closed by a lost connection; the count of Kafka's `ShareSessionEvictionsPerSec`."""
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
        """Return the session of a member, None if it has none."""
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
        """Open, continue or close the session of a share fetch.

        Raises ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, INVALID_REQUEST for
        acknowledgements in the first request, SHARE_SESSION_LIMIT_REACHED, and UNKNOWN_SERVER_ERROR, as Kafka
        does, if the first request names a partition twice.
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
        """Continue the session of a ShareAcknowledge request; the final epoch does not change it.

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

    # -- opening and closing sessions -----------------------------------------------------------

    def _maybe_create_session(
        self, key: ShareSessionKey, partitions: Iterable[TopicIdPartition], connection: SessionConnection
    ) -> bool:
        """Open a session; return False if `max_sessions` is reached."""
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
        """Update the total with the session's current number of partitions."""
        self.partition_count += len(session) - session.cached_size
        session.cached_size = len(session)

    def remove(self, key: ShareSessionKey) -> list[TopicIdPartition]:
        """Close the session of a member; return its partitions, empty if it has no session."""
        session = self._sessions.pop(key, None)
        if session is None:
            return []
        self.partition_count -= session.cached_size
        self._session_counts[key.group_id] -= 1
        if not self._session_counts[key.group_id]:
            del self._session_counts[key.group_id]
        connection_session = self._by_connection.get(session.connection)
        if connection_session is not None:
            connection_session.is_stale = True
        return list(session)

    def remove_all(self) -> None:
        """Close all sessions: share groups are disabled in the cluster."""
        self._sessions.clear()
        self._session_counts.clear()
        self.partition_count = 0

    def _connection_lost(self, connection: SessionConnection) -> None:
        """Close the session of a client that has disconnected, and report if its group has none left."""
        connection_session = self._by_connection.pop(connection)
        key = connection_session.key
        if not connection_session.is_stale and key in self._sessions:
            self.evictions += 1
            self._on_member_leave(key)
            self.remove(key)
        if key.group_id not in self._session_counts:
            self._on_group_empty(key.group_id)
