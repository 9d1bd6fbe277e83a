"""An election that waits until this broker knows the new leaders; mirrors `DelayedElectLeader`.

Deliberate difference: a KRaft broker forwards elections to the controller and answers with the
controller's reply at once. Here, as in Kafka's class, the reply waits until the new leaders are in
this broker's metadata, so that a client that asks this broker next sees them. The answer is the
controller's in both cases, also when the wait times out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.runtime.delayed_request import DelayedRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.metadata.topic_partition import TopicPartition


class DelayedElectLeader(DelayedRequest):
    """Waits until the expected leaders are in this broker's metadata, or for `delay_ms`."""

    __slots__ = ("_current_leader", "_response_callback", "_waiting")

    api = "ElectLeaders"

    def __init__(
        self,
        delay_ms: int,
        expected_leaders: Mapping[TopicPartition, int],
        current_leader: Callable[[TopicPartition], int],
        response_callback: Callable[[], None],
        client_id: str | None = None,
    ) -> None:
        super().__init__(delay_ms, client_id)
        self._waiting = dict(expected_leaders)
        self._current_leader = current_leader
        self._response_callback = response_callback

    def try_complete(self) -> bool:
        """Complete once every expected leader has been seen."""
        for topic_partition, leader in list(self._waiting.items()):
            if self._current_leader(topic_partition) == leader:
                del self._waiting[topic_partition]
        return not self._waiting and self.force_complete()

    def on_expiration(self) -> None:
        """Do nothing: the response is the controller's reply."""

    def on_complete(self) -> None:
        """Call the response callback."""
        self._response_callback()
