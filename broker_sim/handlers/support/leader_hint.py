"""Where the leader is, for the response that says NOT_LEADER_OR_FOLLOWER (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker_sim.metadata import MetadataImage
    from broker_sim.metadata.topic_partition import TopicPartition

__all__ = ["LeaderHints"]


class LeaderIdAndEpoch(Protocol):
    """The `current_leader` struct of produce and fetch responses."""

    leader_id: int
    leader_epoch: int


class LeaderHints:
    """Fills `current_leader` structs and remembers which brokers they name."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
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
        """Return (node id, host, port, rack) of the brokers named so far that are alive."""
        brokers = (self._image.alive_broker(leader) for leader in self._leaders)
        return [(b.broker_id, b.host, b.port, b.rack) for b in brokers if b is not None]
