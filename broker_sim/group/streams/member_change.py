"""What one heartbeat changes of a member, as the steps of `MemberUpdates` pass it on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker_sim.protocol import messages

if TYPE_CHECKING:
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.group.streams.status import Status
    from broker_sim.group.streams.streams_group import StreamsGroup


@dataclass(slots=True)
class MemberChange:
    """A member of a group before and after its heartbeat; each step adds its records, and what it has to say."""

    group: StreamsGroup
    member: StreamsMember
    updated: StreamsMember
    request: messages.StreamsGroupHeartbeatRequest
    written: list[GroupRecord] = field(default_factory=list)
    statuses: list[messages.StreamsGroupHeartbeatResponse.Status] = field(default_factory=list)

    def say(self, status: Status, detail: str) -> None:
        """Tell the member something beside its tasks."""
        self.statuses.append(messages.StreamsGroupHeartbeatResponse.Status(status, detail))
