"""Carries the actions of a schedule out on a cluster in virtual time, and undoes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.faults.cluster_faults import ClusterFaults
from broker_sim.cluster.random_run.faults.action import FOLLOWER, GROUPS, THIRD, TRANSACTIONS
from broker_sim.errors import ApiError, WrongStateError
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.runtime.links import CONTROLLER_ID, LinkFault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.cluster.random_run.faults.action import Action
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster

    Undo = Callable[[], object]

__all__ = ["Actions"]

TRANSACTION_STATE = TopicPartition(TRANSACTION_STATE_TOPIC, 0)
_PARTITION_OF = {
    GROUPS: TopicPartition(GROUP_METADATA_TOPIC, 0),
    TRANSACTIONS: TRANSACTION_STATE,
}
_PLACES = {FOLLOWER: 0, THIRD: 1}


class Actions:
    """The actions that are in force; several may concern the same broker or link.

    `done` counts those that were carried out. A link is cut as long as any action cuts it, and as slow
    as the slowest one makes it.
    """

    def __init__(
        self,
        cluster: VirtualCluster,
        topic: str,
        on_started: Callable[[int], object] = lambda _: None,
    ) -> None:
        """`topic` has the partitions that they name; `on_started(broker_id)` hears of each start of a broker."""
        self.done = 0
        self.resumed_coordinator_epochs: set[int] = set()
        """The leader epochs of the transactions' state in which its leader was killed and started again."""
        self.paused_ms: dict[int, int] = dict.fromkeys(cluster.nodes.nodes, 0)
        """How long each broker has been paused, in all."""
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._topic = topic
        self._faults = faults = ClusterFaults(
            cluster.inside,
            cluster.loop.network,
            on_stopped=self._stopped,
            on_start=self._about_to_start,
            on_started=on_started,
        )
        combined = faults.combined
        self._kinds: dict[str, Callable[[Action], Undo | None]] = {
            "pause": lambda action: self._pause(*action.on),
            "kill": lambda action: faults.kill(*action.on),
            "lose_power": lambda action: self._lose_power(action.on),
            "stop": lambda action: faults.stop(*action.on),
            "isolate": lambda action: faults.isolate(*action.on),
            "cut": lambda action: combined.fault_links([action.on], LinkFault(drop=True)),
            "slow": lambda action: combined.fault_links(
                [action.on], LinkFault(delay_ms=action.value)
            ),
            "cut_requests": lambda action: faults.deaf(*action.on),
            "cut_responses": lambda action: faults.mute(*action.on),
            "shift_clock": lambda action: faults.shift_clock(action.on[0], action.value),
            "transfer": lambda action: self._transfer(*action.on),
            "move_group": lambda action: faults.move_groups(*action.on),
            "move_transactions": lambda action: faults.move_transactions(*action.on),
        }
        self._in_force = 0
        self._quiet_since_ms = cluster.now_ms
        self._disturbed: dict[int, int] = dict.fromkeys(cluster.nodes.nodes, 0)
        self._calm_since_ms: dict[int, int] = dict.fromkeys(cluster.nodes.nodes, cluster.now_ms)

    @property
    def quiet_since_ms(self) -> int | None:
        """Since when no action has been in force, and no broker in a shutdown; None if one is."""
        return None if self._in_force or self._faults.shutting_down else self._quiet_since_ms

    def is_undisturbed(self, broker_id: int, since_ms: int) -> bool:
        """Whether the broker has run, with healthy links to and from the controller, since then."""
        return not self._disturbed[broker_id] and self._calm_since_ms[broker_id] <= since_ms

    def schedule(self, actions: Iterable[Action]) -> None:
        """Carry each action out when its time has come, counted from now."""
        for action in actions:
            self._cluster.scheduler.call_later(action.at_ms, self._begin, action)

    def _begin(self, action: Action) -> None:
        try:
            action = self._resolved(action)
            undo = self._carry_out(action)
        except (ApiError, WrongStateError):
            return
        self.done += 1
        self._cluster.trace.record(*action[1:])
        if undo is None:
            return
        self._in_force += 1
        for broker_id in _disturbs(action):
            self._disturbed[broker_id] += 1
        self._cluster.scheduler.call_later(action.for_ms, self._end, action, undo)

    def _end(self, action: Action, undo: Undo) -> None:
        self._cluster.trace.record("undo", *action[1:3])
        undo()
        self._in_force -= 1
        self._quiet_since_ms = now_ms = self._cluster.now_ms
        for broker_id in _disturbs(action):
            self._disturbed[broker_id] -= 1
            self._calm_since_ms[broker_id] = now_ms

    def _resolved(self, action: Action) -> Action:
        """Return it with numbers for what its brokers are now. Raises WrongStateError if there is none."""
        if all(node >= CONTROLLER_ID for node in action.on):
            return action
        on = tuple(node if node >= CONTROLLER_ID else self._who_is(node) for node in action.on)
        if len(set(on)) < len(on) and action.kind in {"cut", "slow"}:
            raise WrongStateError("a broker has no link to itself")
        return action._replace(on=on)

    def _who_is(self, role: int) -> int:
        key = _PARTITION_OF.get(role, TopicPartition(self._topic, 0))
        state = self._nodes.controller.image.partition(key)
        if state is None or not state.has_leader:
            raise WrongStateError(f"{key} has no leader")
        others = [replica for replica in state.replicas if replica != state.leader]
        place = _PLACES.get(role)
        if place is None:
            return state.leader
        if place >= len(others):
            raise WrongStateError(f"{key} has no such replica")
        return others[place]

    def _carry_out(self, action: Action) -> Undo | None:
        """Do it, and return what undoes it. Raises WrongStateError or ApiError if it does not fit."""
        return self._kinds[action.kind](action)

    # -- what is done --------------------------------------------------------------------------------

    def _pause(self, broker_id: int) -> Undo:
        resume, paused_at_ms = self._faults.pause(broker_id), self._cluster.now_ms

        def undo() -> None:
            self.paused_ms[broker_id] += self._cluster.now_ms - paused_at_ms
            resume()

        return undo

    def _lose_power(self, broker_ids: tuple[int, ...]) -> Undo:
        self._cluster.inside.lose_power(*broker_ids)
        return lambda: self._faults.start(*broker_ids)

    def _about_to_start(self, broker_id: int) -> None:
        state = self._nodes.controller.image.partition(TRANSACTION_STATE)
        if state is not None and state.leader == broker_id:
            self.resumed_coordinator_epochs.add(state.leader_epoch)

    def _stopped(self, _broker_id: int) -> None:
        self._quiet_since_ms = self._cluster.now_ms

    def _transfer(self, partition: int, leader: int) -> None:
        self._nodes.transfer_leadership(self._topic, partition, leader)


def _disturbs(action: Action) -> list[int]:
    """Return the brokers that cannot work, or not with the controller, while it is in force."""
    concerned = [node for node in action.on if node != CONTROLLER_ID]
    if action.kind in {"pause", "kill", "stop", "lose_power", "isolate"} or len(concerned) < len(
        action.on
    ):
        return concerned
    return []
