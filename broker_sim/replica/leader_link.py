"""The link from a follower to the leaders that it fetches from; mirrors `RemoteLeaderEndPoint`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.errors import ErrorCode
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.fetch_params import FetchPartitionData
    from broker_sim.replica.follower_session import FollowerFetch
    from broker_sim.replica.replica_server import ReplicaServer
    from broker_sim.runtime.links import Links


class LeaderLink:
    """Sends a follower's requests to leaders; exactly one callback of each is called, unless this broker is killed."""

    def __init__(self, broker_id: int, links: Links, server_of: Callable[[int], ReplicaServer]) -> None:
        """`server_of(leader_id)` is called in the leader's process, when a request has arrived there."""
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

        The response has the partitions of the session with news; it is None if the leader does not have the session.
        """
        self._links.call(
            self._broker_id,
            leader_id,
            lambda on_result: self._server_of(leader_id).serve_fetch(request, on_result),
            on_response,
            on_failure,
        )

    def fetch_log_bounds(
        self,
        leader_id: int,
        topic_partition: TopicPartition,
        current_leader_epoch: int,
        on_response: Callable[[ErrorCode, int, int], None],
        on_failure: Callable[[], None],
    ) -> None:
        """Ask for the leader's log start and end offset."""

        def serve(on_result: Callable[[tuple[ErrorCode, int, int]], None]) -> None:
            self._server_of(leader_id).serve_log_bounds(topic_partition, current_leader_epoch, on_result)

        self._links.call(self._broker_id, leader_id, serve, lambda bounds: on_response(*bounds), on_failure)
