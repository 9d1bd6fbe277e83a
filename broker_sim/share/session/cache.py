"""The share sessions of a broker; mirrors `ShareSessionCache`.

A session ends when its member ends it, or when the connection is lost on which it was made. A member that begins
a new session on another connection has one that does not end with the old connection: that is stale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker_sim.share.session.session import ShareSession, ShareSessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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


class ShareSessionCache:
    """All sessions, at most `max_entries`. Thread rule: the broker's loop."""

    def __init__(self, max_entries: int) -> None:
        self.partition_count = 0
        """Partitions of all sessions; Kafka's `SharePartitionsCount`."""
        self.evictions = 0
        """Sessions that ended with their connection; Kafka's `ShareSessionEvictionsPerSec` counts them."""
        self.on_member_leave: Callable[[str, str], object] = lambda _group, _member: None
        self.on_group_empty: Callable[[str], object] = lambda _group: None
        self._max_entries = max_entries
        self._sessions: dict[ShareSessionKey, ShareSession] = {}
        self._members: dict[str, int] = {}
        """How many sessions each group has."""
        self._by_connection: dict[object, _SessionOfConnection] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: ShareSessionKey) -> ShareSession | None:
        """Return the session of a member, if it has one."""
        return self._sessions.get(key)

    def maybe_create_session(
        self, key: ShareSessionKey, partitions: Iterable[TopicIdPartition], connection: SessionConnection
    ) -> bool:
        """Begin a session, in which the member has asked once; return False if there is no room."""
        if len(self._sessions) >= self._max_entries:
            return False
        session = ShareSession(key, partitions, connection)
        self._sessions[key] = session
        self.update_partition_count(session)
        self._members[key.group_id] = self._members.get(key.group_id, 0) + 1
        if connection not in self._by_connection:
            connection.when_lost(lambda: self._connection_lost(connection))
        self._by_connection[connection] = _SessionOfConnection(key)
        return True

    def update_partition_count(self, session: ShareSession) -> None:
        """Count the partitions that the session has now."""
        self.partition_count += len(session) - session.cached_size
        session.cached_size = len(session)

    def remove(self, key: ShareSessionKey) -> bool:
        """End the session of a member; return whether there was one."""
        session = self._sessions.pop(key, None)
        if session is None:
            return False
        self.partition_count -= session.cached_size
        self._members[key.group_id] -= 1
        if not self._members[key.group_id]:
            del self._members[key.group_id]
        of_connection = self._by_connection.get(session.connection)
        if of_connection is not None:
            of_connection.is_stale = True
        return True

    def remove_all(self) -> None:
        """End all sessions: share groups are not served any more."""
        self._sessions.clear()
        self._members.clear()
        self.partition_count = 0

    def _connection_lost(self, connection: SessionConnection) -> None:
        """End the session of a client that has gone, and tell when no member of its group is left."""
        of_connection = self._by_connection.pop(connection)
        key = of_connection.key
        if not of_connection.is_stale and key in self._sessions:
            self.evictions += 1
            self.on_member_leave(*key)
            self.remove(key)
        if key.group_id not in self._members:
            self.on_group_empty(key.group_id)
