"""Invariant of a streams group once all brokers are back: it becomes stable, and its next coordinator loads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.chaos.random_run.checks.coordinators import GROUPS_PARTITION
from broker_sim.cluster.nodes.nodes import leaders_log, live_leader
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.errors import ApiError
from broker_sim.group.modern.assigned_group import STABLE
from broker_sim.group.streams.streams_group import StreamsGroup

if TYPE_CHECKING:
    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster

LOAD_LIMIT_MS = 2_000
"""Maximum time in ms until a new coordinator has learned of its election and loaded the group."""


def streams_group_is_stable(cluster: VirtualCluster, group_id: str, members: int) -> bool:
    """Return whether the group is stable with that number of members, and its log is fully replicated."""
    group = _group_at(live_leader(cluster.nodes, GROUPS_PARTITION), group_id)
    log = leaders_log(cluster.nodes, GROUPS_PARTITION)
    if group is None or log is None:
        return False
    is_stable = group.state_name == STABLE and len(group.members) == members
    return is_stable and log.high_watermark == log.log_end_offset


class NextCoordinator:
    """Another broker that takes over the coordination of a group, which must load it unchanged."""

    def __init__(self, cluster: VirtualCluster, group_id: str) -> None:
        """Make another in-sync replica the coordinator, if there is one."""
        self._cluster = cluster
        self._group_id = group_id
        group = _group_at(live_leader(cluster.nodes, GROUPS_PARTITION), group_id)
        assert group is not None
        self._before = _state(group)
        state = cluster.nodes.controller.image.partition(GROUPS_PARTITION)
        assert state is not None
        others = [replica for replica in state.isr if replica != state.leader]
        self._broker_id = others[0] if others else state.leader
        if others:
            topic, number = GROUPS_PARTITION
            cluster.nodes.transfer_leadership(topic, number, self._broker_id)

    def has_loaded(self) -> bool:
        """Return whether the new coordinator has loaded the group."""
        return self._group() is not None

    def _group(self) -> StreamsGroup | None:
        return _group_at(self._cluster.nodes.brokers.get(self._broker_id), self._group_id)

    def check(self) -> None:
        """Compare the loaded group with its former state; raises InvariantViolationError."""
        after = self._group()
        assert after is not None
        before, now = self._before, _state(after)
        if different := [name for name in before if before[name] != now[name]]:
            differences = ", ".join(f"{name} {before[name]} and {now[name]}" for name in different)
            violated(
                "streams-groups-are-loaded-whole",
                f"the next coordinator of {self._group_id} has loaded another state: {differences}",
            )


def _group_at(broker: Broker | None, group_id: str) -> StreamsGroup | None:
    """Return the group at its coordinating broker; None as long as the broker does not coordinate it."""
    if broker is None:
        return None
    try:
        group = broker.groups.shard(group_id).groups.get(group_id)
    except ApiError:
        return None
    return group if isinstance(group, StreamsGroup) else None


def _state(group: StreamsGroup) -> dict[str, Any]:
    """Return the part of the group's state that is in the log."""
    return {
        "group epoch": group.group_epoch,
        "assignment epoch": group.assignment_epoch,
        "topology": group.topology,
        "topology epoch": group.validated_topology_epoch,
        "metadata hash": group.metadata_hash,
        "configurations": dict(group.last_assignment_configs),
        "members": dict(group.members.items()),
        "targets": dict(group.targets.items()),
    }
