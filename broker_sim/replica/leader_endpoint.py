"""What a follower asks of the leaders of its partitions; mirrors `kafka.server.LeaderEndPoint`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.errors import ErrorCode
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.fetch_params import FetchPartitionData
    from broker_sim.replica.follower_session import FollowerFetch


class LeaderEndpoint(Protocol):
    """The connection to a leader."""

    def fetch(
        self,
        leader_id: int,
        request: FollowerFetch,
        on_response: Callable[[Sequence[tuple[TopicPartition, FetchPartitionData]] | None], None],
        on_failure: Callable[[], None],
    ) -> None:
        """Send a fetch; exactly one callback is called, unless this broker is killed before.

        The response has the partitions of the session with news; it is None if the leader does not
        have the session.
        """

    def fetch_log_bounds(
        self,
        leader_id: int,
        topic_partition: TopicPartition,
        current_leader_epoch: int,
        on_response: Callable[[ErrorCode, int, int], None],
        on_failure: Callable[[], None],
    ) -> None:
        """Ask for the leader's log start and end offset."""
