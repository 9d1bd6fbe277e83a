"""The present disturbances of a random run's cluster, and the time since the last one ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.action import CONTROLLER, broker_name
from broker_sim.chaos.faults.cluster_faults import ClusterFaults
from broker_sim.chaos.faults.faults import Faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.chaos.faults.action import Action
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster

_HAMPERING: Final = {
    "pause", "kill", "stop", "lose_power", "isolate", "full_disk", "slow_disk", "lag"
}  # fmt: skip
"""Kinds of faults during which a broker cannot work, or cannot reach the controller; besides faults of links to
it."""


class Disturbances:
    """The faults of one run, and their effects so far."""

    def __init__(self, cluster: VirtualCluster, on_started: Callable[[int], object] = lambda _: None) -> None:
        """`on_started(broker_id)` is called after each start of a broker."""
        self.done = 0
        """Number of executed actions."""
        self.removed_ms = -1
        """Time in ms when an admin client last removed members from groups; -1 if never."""
        self.paused_ms: dict[int, int] = dict.fromkeys(cluster.nodes.nodes, 0)
        """Total time in ms for which each broker has been paused."""
        self._cluster = cluster
        self._faults = Faults(
            cluster.loop,
            ClusterFaults(
                cluster.inside,
                cluster.loop.network,
                on_stopped=self._stopped,
                on_start=self._about_to_start,
                on_started=on_started,
            ),
            self,
        )
        names = [broker_name(each) for each in cluster.nodes.nodes]
        self._quiet_since_ms = cluster.now_ms
        self._hampered: dict[str, int] = dict.fromkeys(names, 0)
        self._calm_since_ms: dict[str, int] = dict.fromkeys(names, cluster.now_ms)

    def schedule(self, actions: Iterable[Action]) -> None:
        """Carry each action out when its time has come, counted from now. Raises ScheduleError."""
        self._faults.schedule(actions)

    @property
    def quiet_since_ms(self) -> int | None:
        """Time in ms since which no fault is in force and no broker is shutting down or starting; None otherwise."""
        return None if self._faults.are_in_force else self._quiet_since_ms

    def is_undisturbed(self, broker_id: int, since_ms: int) -> bool:
        """Whether the broker has been running with healthy links to and from the controller since then."""
        name = broker_name(broker_id)
        return not self._hampered[name] and self._calm_since_ms[name] <= since_ms

    # -- what happens ---------------------------------------------------------------------------------

    def begun(self, action: Action) -> None:
        """Handle an action that was executed."""
        self.done += 1
        self._cluster.trace.record(*action[1:])
        for name in _hampers(action):
            self._hampered[name] += 1
        if action.kind == "rebalance":
            self.removed_ms = self._cluster.now_ms

    def ended(self, action: Action) -> None:
        """Handle the end of an action."""
        self._cluster.trace.record("undo", *action[1:3])
        self._quiet_since_ms = now_ms = self._cluster.now_ms
        for name in _hampers(action):
            self._hampered[name] -= 1
            self._calm_since_ms[name] = now_ms
        if action.kind == "pause":
            broker_id = int(action.on[0].partition("-")[2])
            self.paused_ms[broker_id] += action.for_ms

    def not_done(self, action: Action, error: Exception) -> None:
        """Do nothing: another fault was in the way."""

    def _about_to_start(self, broker_id: int) -> None:
        self._calm_since_ms[broker_name(broker_id)] = self._cluster.now_ms

    def _stopped(self, _broker_id: int) -> None:
        self._quiet_since_ms = self._cluster.now_ms


def _hampers(action: Action) -> list[str]:
    """Return the brokers that cannot work, or cannot reach the controller, during the action."""
    if action.kind in _HAMPERING or CONTROLLER in action.on:
        return [name for name in action.on if name != CONTROLLER]
    return []
