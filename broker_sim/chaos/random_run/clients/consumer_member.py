"""Members of a group of the consumer protocol (KIP-848) in a random run; some are static."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.random_run.clients.group_member import REBALANCE_TIMEOUT_MS
from broker_sim.chaos.random_run.clients.modern_member import ModernMember
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.group.modern.assigned_group import LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from broker_sim.chaos.random_run.clients.shared_state import SharedState

CONSUMER_GROUP: Final = "consumer-group"
STATIC_EVERY: Final = 3


class ConsumerMember(ModernMember):
    """One member; every third one is static."""

    def __init__(self, shared: SharedState, number: int) -> None:
        self._instance_id = f"instance-{number}" if number % STATIC_EVERY == 2 else None
        name, chance = f"consumer-member-{number}", f"consumers/{number}"
        super().__init__(shared, name, CONSUMER_GROUP, chance, shared.consumer_history)

    @property
    def _owner(self) -> str:
        return self._instance_id or self._member_id

    def _leave_request(self) -> Any:
        request = self._empty_heartbeat()
        is_back_soon = self._instance_id is not None and self._is_drawn(0.5)
        request.member_epoch = LEAVE_GROUP_STATIC_EPOCH if is_back_soon else LEAVE_GROUP_EPOCH
        self._history.give_up(self._owner)
        return request

    def _empty_heartbeat(self) -> messages.ConsumerGroupHeartbeatRequest:
        return messages.ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self._member_id, instance_id=self._instance_id, member_epoch=self._epoch
        )

    def _heartbeat(self) -> messages.ConsumerGroupHeartbeatRequest:
        request = self._empty_heartbeat()
        if self._tells_all:
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.subscribed_topic_names = [TOPIC]
        if self._tells_all or self._tells_owned:
            topic = self._shared.cluster.nodes.controller.image.topics[TOPIC]
            owned = [request.TopicPartitions(topic.topic_id, sorted(self._positions))]
            request.topic_partitions = owned if self._positions else []
            self._history.give_up(self._owner, self._positions)
        return request

    def _assigned_in(self, response: messages.ConsumerGroupHeartbeatResponse) -> tuple[int, ...] | None:
        if response.assignment is None:
            return None
        topics = response.assignment.topic_partitions
        return tuple(number for topic in topics for number in topic.partitions)
