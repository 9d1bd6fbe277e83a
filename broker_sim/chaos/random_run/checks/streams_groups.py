"""Invariant of a streams group once all brokers are back: it is stable, and its next coordinator knows it."""

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
"""Maximum time until a new coordinator has heard of it and has loaded the group."""


def streams_group_is_stable(cluster: VirtualCluster, group_id: str, members: int) -> bool:
    """Return whether the group has so many members, which have what is meant for them, and the replicas know it."""
    group = _group_at(live_leader(cluster.nodes, GROUPS_PARTITION), group_id)
    log = leaders_log(cluster.nodes, GROUPS_PARTITION)
    if group is None or log is None:
        return False
    is_stable = group.state_name == STABLE and len(group.members) == members
    return is_stable and log.high_watermark == log.log_end_offset


class NextCoordinator:
    """Another broker that is to coordinate a group, which must be there as it was."""

    def __init__(self, cluster: VirtualCluster, group_id: str) -> None:
        """Let another in-sync replica coordinate, if there is one."""
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
        """Return whether it knows the group."""
        return self._group() is not None

    def _group(self) -> StreamsGroup | None:
        return _group_at(self._cluster.nodes.brokers.get(self._broker_id), self._group_id)

    def check(self) -> None:
        """Compare the group there with what it was before; raises InvariantViolationError."""
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
    """Return the group of a broker that coordinates it; None as long as it does not."""
    if broker is None:
        return None
    try:
        group = broker.groups.shard(group_id).groups.get(group_id)
    except ApiError:
        return None
    return group if isinstance(group, StreamsGroup) else None


def _state(group: StreamsGroup) -> dict[str, Any]:
    """Return all of the group that is in the log."""
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
