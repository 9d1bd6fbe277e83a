"""An election that waits until this broker has heard of its result; mirrors `DelayedElectLeader`.

Deliberate difference: since KRaft a Kafka broker forwards elections to the controller and answers
with the controller's reply. Here the reply is parked until the metadata that it caused has arrived,
as in Kafka's class, so that a client that asks this broker next sees the new leader; the answer is
the controller's in both cases, also when the wait times out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.runtime.delayed_request import DelayedRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.metadata.topic_partition import TopicPartition

__all__ = ["DelayedElectLeader"]


class DelayedElectLeader(DelayedRequest):
    """Parks the reply until the expected leaders stand in this broker's metadata."""

    __slots__ = ("_current_leader", "_respond", "_waiting")

    api = "ElectLeaders"

    def __init__(
        self,
        delay_ms: int,
        expected_leaders: Mapping[TopicPartition, int],
        current_leader: Callable[[TopicPartition], int],
        respond: Callable[[], None],
        client_id: str | None = None,
    ) -> None:
        super().__init__(delay_ms, client_id)
        self._waiting = dict(expected_leaders)
        self._current_leader = current_leader
        self._respond = respond

    def try_complete(self) -> bool:
        """Complete once every expected leader has been seen."""
        for topic_partition, leader in list(self._waiting.items()):
            if self._current_leader(topic_partition) == leader:
                del self._waiting[topic_partition]
        return not self._waiting and self.force_complete()

    def on_expiration(self) -> None:
        """Nothing more: the controller's reply stands."""

    def on_complete(self) -> None:
        """Answer."""
        self._respond()
