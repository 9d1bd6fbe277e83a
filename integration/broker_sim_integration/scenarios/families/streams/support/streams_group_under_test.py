"""A streams group of a scenario, its members, and observations of responses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim_integration.clients.groups import list_groups
from broker_sim_integration.scenarios.families.streams.support.topologies import TaskIds, subtopology, topology
from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest, groups_on
from broker_sim_integration.scenarios.helpers.observe import concluded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim_integration.clients.raw_client import RawConnection, Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

VERSION: Final = 0
JOINS: Final = 0
LEAVES: Final = -1
REBALANCE_MS: Final = 60_000
Response = messages.StreamsGroupHeartbeatResponse


@dataclass
class StreamsMember:
    """A member that owns its assigned tasks, unless a request says otherwise; heartbeats go to `coordinator`."""

    group: str
    member_id: str
    process_id: str
    topology: messages.StreamsGroupHeartbeatRequest.Topology
    coordinator: RawConnection
    epoch: int = 0
    active: Sequence[messages.StreamsGroupHeartbeatRequest.TaskIds] = ()
    standby: Sequence[messages.StreamsGroupHeartbeatRequest.TaskIds] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def join(self, **fields: Any) -> Reply[messages.StreamsGroupHeartbeatResponse]:
        """Join, or rejoin, the group; `fields` override the request's fields."""
        self.epoch, self.active, self.standby = JOINS, (), ()
        told = {"rebalance_timeout_ms": REBALANCE_MS, "topology": self.topology, "process_id": self.process_id}
        return self.heartbeat(**{**told, **self.options, **fields})

    def leave(self, **fields: Any) -> Reply[messages.StreamsGroupHeartbeatResponse]:
        """Leave the group."""
        return self.heartbeat(member_epoch=LEAVES, **fields)

    def heartbeat(self, **fields: Any) -> Reply[messages.StreamsGroupHeartbeatResponse]:
        """Send a heartbeat with the tasks that the member owns; `fields` override the request's fields."""
        request = messages.StreamsGroupHeartbeatRequest(
            **{
                "group_id": self.group,
                "member_id": self.member_id,
                "member_epoch": self.epoch,
                "active_tasks": list(self.active),
                "standby_tasks": list(self.standby),
                "warmup_tasks": [],
                **fields,
            }
        )
        reply = self.coordinator.request(request, VERSION, Response)
        message = reply.message
        if not message.error_code:
            self.epoch = max(JOINS, message.member_epoch)
        if message.active_tasks is not None:
            self.active, self.standby = (
                [TaskIds(each.subtopology_id, each.partitions) for each in told or ()]
                for told in (message.active_tasks, message.standby_tasks)
            )
        return reply


class StreamsGroupUnderTest(GroupUnderTest):
    """A streams group whose coordinator is the first broker."""

    def __init__(self, cluster: ClusterUnderTest, name: str, coordinator: int) -> None:
        super().__init__(cluster, name, coordinator)
        self._names[cluster.topics.name("")] = "topics "

    def streams_member(
        self,
        name: str,
        *subtopologies: messages.StreamsGroupHeartbeatRequest.Subtopology,
        process: str | None = None,
        epoch: int = 0,
        **options: Any,
    ) -> StreamsMember:
        """Return a new member that has not joined yet, in a process of its own unless `process` is given."""
        return StreamsMember(
            self.name,
            f"id-of-{name}",
            f"process-of-{process or name}",
            topology(*subtopologies, epoch=epoch),
            self.tool,
            options=options,
        )

    def begin(self, topic: Topic) -> StreamsMember:
        """Join a first member that reads the topic, and wait until all tasks are assigned to it."""
        member = self.streams_member("first", subtopology("0", topic.name))
        self.assign(member)
        return member

    def assign(self, member: StreamsMember) -> None:
        """Join a member to a new group, and send heartbeats until it has tasks."""
        joined = member.join()
        assert not joined.message.error_code, joined.message

        def is_assigned() -> bool:
            answer = member.heartbeat().message
            return not answer.error_code and bool(member.active)

        self._cluster.wait_until(is_assigned, f"{self.name} has assigned tasks")

    def described(self) -> Reply[messages.StreamsGroupDescribeResponse]:
        """Describe the group."""
        return describe_streams_groups(self, self.name)

    def listed(self, step: str, *, types: Sequence[str] = (), states: Sequence[str] = ()) -> Observation:
        """Observe the group in ListGroups with these group types or states."""
        found = list_groups(self.tool, types=types, states=states).message.groups
        rows = [[each.protocol_type, each.group_state, each.group_type] for each in found if each.group_id == self.name]
        return concluded(step, groups=rows)


def describe_streams_groups(group: GroupUnderTest, *names: str) -> Reply[messages.StreamsGroupDescribeResponse]:
    """Describe streams groups at the coordinator of `group`."""
    return group.tool.request(
        messages.StreamsGroupDescribeRequest(list(names)), VERSION, messages.StreamsGroupDescribeResponse
    )


def streams_groups_on(cluster: ClusterUnderTest, count: int = 1) -> list[StreamsGroupUnderTest]:
    """Return streams groups whose coordinator is the first broker.

    A scenario has to request all its groups in one call: the next call returns the same groups.
    """
    found = [
        StreamsGroupUnderTest(cluster, group.name, group.coordinator)
        for group in groups_on(cluster, cluster.first, count)
    ]
    cluster.topics.settle()  # the offsets topic may just have been created
    return found
