"""The link from a follower to the leaders that it fetches from; mirrors `RemoteLeaderEndPoint`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.broker.environment import Peer
    from broker_sim.errors import ErrorCode
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica import FetchPartitionData, FollowerFetch
    from broker_sim.runtime.links import Links


class LeaderLink:
    """The `LeaderEndpoint` over links."""

    def __init__(self, broker_id: int, links: Links, peers: Mapping[int, Peer]) -> None:
        self._broker_id = broker_id
        self._links = links
        self._peers = peers

    def fetch(
        self,
        leader_id: int,
        request: FollowerFetch,
        on_response: Callable[[Sequence[tuple[TopicPartition, FetchPartitionData]] | None], None],
        on_failure: Callable[[], None],
    ) -> None:
        """Send a fetch to the leader's broker."""
        self._links.call(
            self._broker_id,
            leader_id,
            lambda on_result: self._peers[leader_id].replica_server.serve_fetch(request, on_result),
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
            self._peers[leader_id].replica_server.serve_log_bounds(topic_partition, current_leader_epoch, on_result)

        self._links.call(self._broker_id, leader_id, serve, lambda bounds: on_response(*bounds), on_failure)
