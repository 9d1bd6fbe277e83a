"""Followers' fetches from their leaders, over links; mirrors `RemoteLeaderEndPoint`.

In Kafka followers send the Fetch, ListOffsets and OffsetForLeaderEpoch requests of clients; here `LeaderLink` at the
follower calls `ReplicaServer` at the leader, and both lead to the same `ReplicaManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.special_values import NO_EPOCH
from broker_sim.replica.follower_session import INITIAL_EPOCH, FollowerSession

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.fetch_params import FetchPartitionData
    from broker_sim.replica.follower_session import FollowerFetch
    from broker_sim.replica.replica_manager import ReplicaManager
    from broker_sim.runtime.action_queue import ActionQueue
    from broker_sim.runtime.links import Links

_FETCH: Final = ApiKey.FETCH.api_name
_LIST_OFFSETS: Final = ApiKey.LIST_OFFSETS.api_name


class LeaderLink:
    """Sends a follower's requests to leaders; each request calls one of its callbacks, unless this broker is killed."""

    def __init__(self, broker_id: int, links: Links, server_of: Callable[[int], ReplicaServer]) -> None:
        """`server_of(leader_id)` is called in the leader's process, when a request arrives there."""
        self._broker_id = broker_id
        self._links = links
        self._server_of = server_of

    def fetch(
        self,
        leader_id: int,
        request: FollowerFetch,
        on_response: Callable[[Sequence[tuple[TopicPartition, FetchPartitionData]] | None], None],
        on_failure: Callable[[], None],
    ) -> None:
        """Send a fetch to the leader's broker.

        The response has the partitions of the session that changed; it is None if the leader lacks the session.
        """
        self._links.call(
            self._broker_id,
            leader_id,
            lambda on_result: self._server_of(leader_id).serve_fetch(request, on_result),
            on_response,
            on_failure,
            _FETCH,
        )

    def fetch_log_bounds(
        self,
        leader_id: int,
        topic_partition: TopicPartition,
        current_leader_epoch: int,
        on_response: Callable[[ErrorCode, int, int], None],
        on_failure: Callable[[], None],
    ) -> None:
        """Request the leader's log start offset and log end offset."""

        def serve(on_result: Callable[[tuple[ErrorCode, int, int]], None]) -> None:
            self._server_of(leader_id).serve_log_bounds(topic_partition, current_leader_epoch, on_result)

        self._links.call(
            self._broker_id, leader_id, serve, lambda bounds: on_response(*bounds), on_failure, _LIST_OFFSETS
        )


class ReplicaServer:
    """Serves followers in the leader's process; `on_result` is called once, now or later."""

    def __init__(self, replica_manager: ReplicaManager, actions: ActionQueue) -> None:
        self._replica_manager = replica_manager
        self._actions = actions
        self._sessions: dict[int, FollowerSession] = {}

    def serve_fetch(
        self,
        request: FollowerFetch,
        on_result: Callable[[Sequence[tuple[TopicPartition, FetchPartitionData]] | None], None],
    ) -> None:
        """Serve a follower's fetch, now or when there is data; the result is None if its session is missing."""
        session = self._session_of(request)
        if session is None:
            on_result(None)
            return
        session.update(request)
        self._actions.serve(self._replica_manager.fetch_for_follower, request.params, session, on_result)

    def latest_offset(self, key: TopicPartition) -> int:
        """Return the latest offset, as ListOffsets does for uncommitted records. Raises `ApiError`."""
        partition = self._replica_manager.get_partition(key)
        log = partition.local_log(NO_EPOCH, require_leader=True)
        partition.check_high_watermark()
        return log.high_watermark

    def _session_of(self, request: FollowerFetch) -> FollowerSession | None:
        follower_id = request.params.replica_id
        session = self._sessions.get(follower_id)
        if request.epoch == INITIAL_EPOCH:
            if session is not None:
                session.close()
            session = self._sessions[follower_id] = FollowerSession(self._replica_manager.purgatories.fetch.key_set())
        elif session is None or session.next_epoch != request.epoch:
            return None
        else:
            session.next_epoch += 1
        return session

    def serve_log_bounds(
        self,
        topic_partition: TopicPartition,
        current_leader_epoch: int,
        on_result: Callable[[tuple[ErrorCode, int, int]], None],
    ) -> None:
        """Return NONE with the log start and log end offset, or an error code with -1 and -1."""
        try:
            partition = self._replica_manager.get_partition(topic_partition)
            local_log = partition.local_log(current_leader_epoch, require_leader=True)
        except ApiError as error:
            on_result((error.error_code, -1, -1))
        else:
            on_result((ErrorCode.NONE, local_log.log_start_offset, local_log.log_end_offset))
