"""Where the leader is, for the response that says NOT_LEADER_OR_FOLLOWER (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from broker_sim.errors import ErrorCode

if TYPE_CHECKING:
    from broker_sim.config import Endpoint
    from broker_sim.metadata import BrokerState, MetadataImage
    from broker_sim.metadata.topic_partition import TopicPartition

HINTED_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""The errors of a fetch with which the leader is told."""


class LeaderIdAndEpoch(Protocol):
    """The `current_leader` struct of produce and fetch responses."""

    leader_id: int
    leader_epoch: int


class LeaderHints:
    """Fills `current_leader` structs and remembers which brokers they name."""

    def __init__(self, image: MetadataImage, listener: str) -> None:
        self._image = image
        self._listener = listener
        self._leaders: dict[int, None] = {}

    def add(self, topic_partition: TopicPartition, current_leader: LeaderIdAndEpoch) -> None:
        """Fill in the leader that this broker's metadata knows; leaves -1 if there is none."""
        state = self._image.partition(topic_partition)
        if state is None:
            return
        current_leader.leader_id = state.leader
        current_leader.leader_epoch = state.leader_epoch
        self._leaders[state.leader] = None

    def endpoints(self) -> list[tuple[int, str, int, str | None]]:
        """Return (node id, host, port, rack) of the brokers named so far that the client can reach."""
        return [
            (broker.broker_id, endpoint.host, endpoint.port, broker.rack)
            for broker, endpoint in map(self._find, self._leaders)
            if broker is not None and endpoint is not None
        ]

    def _find(self, broker_id: int) -> tuple[BrokerState | None, Endpoint | None]:
        broker = self._image.alive_broker(broker_id)
        return broker, None if broker is None else broker.endpoint(self._listener)
