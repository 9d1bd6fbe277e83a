"""Members of a streams group (KIP-1071) in a random run: a topology that reads the topic, one task per partition.

A coordinator sends a member its tasks only in the one response after they have changed. A member that lost a response
may not know of a task, so it joins again; some members first continue for a while in the epoch that they know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.random_run.clients.group_member import REBALANCE_TIMEOUT_MS
from broker_sim.chaos.random_run.clients.modern_member import JOINS, ModernMember
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.group.modern.assigned_group import LEAVE_GROUP_EPOCH
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from broker_sim.chaos.random_run.clients.shared_state import SharedState

STREAMS_GROUP: Final = "streams-group"
SUBTOPOLOGY: Final = "0"
JOINS_AGAIN_SHARE: Final = 0.5
"""Share of heartbeats before which a member that has lost a response joins again."""
Request = messages.StreamsGroupHeartbeatRequest


class StreamsMember(ModernMember):
    """One member, in a process of its own."""

    def __init__(self, shared: SharedState, number: int) -> None:
        self._has_missed = False
        name, chance = f"streams-member-{number}", f"streams/{number}"
        super().__init__(shared, name, STREAMS_GROUP, chance, shared.streams_history)

    @property
    def tasks(self) -> tuple[int, ...]:
        """The partitions whose tasks it runs."""
        return tuple(self._positions)

    @property
    def _may_have_missed(self) -> bool:
        return self._has_missed

    async def _take_part(self) -> None:
        if self._shared.is_steady:
            await self._send_heartbeat()
        else:
            await super()._take_part()

    def _lose_all(self) -> None:
        super()._lose_all()
        self._has_missed = False

    def _leave_request(self) -> Any:
        self._history.give_up(self._owner)
        return Request(group_id=self._group, member_id=self._member_id, member_epoch=LEAVE_GROUP_EPOCH)

    def _heartbeat(self) -> messages.StreamsGroupHeartbeatRequest:
        if self._tells_all and self._epoch != JOINS:
            self._has_missed = True
        if self._has_missed and self._is_drawn(JOINS_AGAIN_SHARE):
            self._history.give_up(self._owner)
            self._lose_all()
        request = Request(group_id=self._group, member_id=self._member_id, member_epoch=self._epoch)
        if self._tells_all:
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.process_id = self._name
        if self._epoch == JOINS:
            reads = Request.Subtopology(SUBTOPOLOGY, source_topics=[TOPIC])
            request.topology = Request.Topology(0, [reads])
        if self._tells_all or self._tells_owned:
            owned = [Request.TaskIds(SUBTOPOLOGY, sorted(self._positions))]
            request.active_tasks = owned if self._positions else []
            request.standby_tasks, request.warmup_tasks = [], []
            self._history.give_up(self._owner, self._positions)
        return request

    def _assigned_in(self, response: messages.StreamsGroupHeartbeatResponse) -> tuple[int, ...] | None:
        if response.active_tasks is None:
            return None
        self._has_missed = False
        return tuple(number for tasks in response.active_tasks for number in tasks.partitions)
