"""The faults of a run: executes the actions of a schedule at their times, in real or virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from broker_sim.chaos.faults.action import BROKERS, CONTROLLER, WORKERS, ScheduleError, broker_name
from broker_sim.chaos.faults.checks import check_action
from broker_sim.chaos.faults.cluster_faults import ROLES, who_is
from broker_sim.errors import ApiError, WrongStateError
from broker_sim.runtime.links import CONTROLLER_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.chaos.faults.action import Action
    from broker_sim.chaos.faults.cluster_faults import ClusterFaults
    from broker_sim.chaos.faults.kinds import Kind

    Undo = Callable[[], object]
    Begun = Undo | asyncio.Task[bool] | asyncio.Task[None] | bool | None


class FaultListener(Protocol):
    """Gets notified of faults, in which roles are resolved to brokers."""

    def begun(self, action: Action) -> None:
        """Handle a fault that has begun."""

    def ended(self, action: Action) -> None:
        """Handle a fault that ends."""

    def not_done(self, action: Action, error: Exception) -> None:
        """Handle a fault that does not happen, because the state of the cluster does not allow it."""


class Faults:
    """The faults of one run, on its cluster and on the programs that use it.

    `programs` has a method for each kind of fault on workers. A method returns the function that ends the fault, or a
    task that ends on its own. A bool as the result of the method, of that function or of the task says whether the
    fault took effect; without one it did if clients and brokers exchanged any messages while it lasted.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, cluster: ClusterFaults, listener: FaultListener, programs: object = None
    ) -> None:
        self._loop = loop
        self._cluster = cluster
        self._listener = listener
        self._programs = programs
        self._in_force = 0
        self.happened: Counter[str] = Counter()
        """Number of faults that have happened, by kind."""
        self.effective: Counter[str] = Counter()
        """Number of finished faults that took effect, by kind."""

    @property
    def are_in_force(self) -> bool:
        """Whether a fault is in force, or a broker is shutting down or starting."""
        cluster = self._cluster
        return bool(self._in_force or cluster.shutting_down or cluster.starting)

    @property
    def are_over(self) -> bool:
        """Whether no fault is in force, all live brokers serve, and all replicas are in sync."""
        nodes = self._cluster.nodes
        return not self.are_in_force and nodes.is_ready and nodes.is_in_sync

    def schedule(self, actions: Iterable[Action]) -> None:
        """Execute each action at its time, counted from now. Raises ScheduleError."""
        for action in actions:
            kind = check_action(action)
            if kind.is_of_workers and self._programs is None:
                raise ScheduleError(f"{action}: this run has no workers")
            self._loop.call_later(action.at_ms / 1000, self._begin, action, kind)

    def _begin(self, action: Action, kind: Kind) -> None:
        traffic = self._cluster.traffic
        try:
            action = action._replace(on=tuple(map(self._resolve, action.on)))
            begun = self._start(action, kind)
        except (ApiError, WrongStateError) as error:
            self._listener.not_done(action, error)
            return
        self._listener.begun(action)
        self.happened[action.kind] += 1
        self._in_force += 1
        if callable(begun):
            self._loop.call_later(action.for_ms / 1000, partial(self._end, action, begun, traffic))
        else:
            self._close(action, traffic, True if begun is None else begun)

    def _resolve(self, name: str) -> str:
        return broker_name(who_is(self._cluster.nodes, name)) if name in ROLES else name

    def _start(self, action: Action, kind: Kind) -> Begun:
        """Begin the fault; return the result of its method. Raises ApiError or WrongStateError."""
        method = getattr(self._programs if kind.is_of_workers else self._cluster, action.kind)
        on: list[Any] = [_number(name) for name in action.on or (BROKERS,)]
        if kind.has_far_end:
            on[1:] = action.on[1:] or [BROKERS]
        begun: Begun = method(*on, *([action.value] if kind.values else []))
        return begun

    def _end(self, action: Action, undo: Undo, traffic: int) -> None:
        self._listener.ended(action)
        self._close(action, traffic, undo())

    def _close(self, action: Action, traffic: int, effect: object) -> None:
        """Count whether the fault took effect, now or when its task ends."""
        if isinstance(effect, asyncio.Task):
            effect.add_done_callback(partial(self._close_unless_cancelled, action, traffic))
            return
        self._in_force -= 1
        took_effect = effect if isinstance(effect, bool) else self._cluster.traffic != traffic
        self.effective[action.kind] += took_effect

    def _close_unless_cancelled(self, action: Action, traffic: int, task: asyncio.Task[object]) -> None:
        if not task.cancelled():  # as by the end of a run
            self._close(action, traffic, task.result())


def _number(name: str) -> int | None:
    """Return the number of a worker or a node; None for all brokers or all workers."""
    if name in {BROKERS, WORKERS}:
        return None
    return CONTROLLER_ID if name == CONTROLLER else int(name.partition("-")[2])
