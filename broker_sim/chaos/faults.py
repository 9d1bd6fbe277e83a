"""Carries the actions of a schedule out when their time has come, in virtual time and in real time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from broker_sim.chaos.kinds import BROKERS, KINDS
from broker_sim.chaos.schedule import ScheduleError
from broker_sim.chaos.timeline import FAULT
from broker_sim.errors import ApiError, UnknownBrokerError, WrongStateError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from broker_sim.chaos.schedule import Action
    from broker_sim.chaos.timeline import Timeline
    from broker_sim.cluster.faults.cluster_faults import ClusterFaults

    Undo = Callable[[], object]

__all__ = ["Faults"]


class Faults:
    """The faults of one run: those of its cluster, and those of the programs beside it.

    `programs` has a method for each kind that is on a worker. `on_begin` hears of what is done.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        cluster: ClusterFaults,
        programs: object,
        timeline: Timeline,
        on_begin: Callable[[Action], object] = lambda _: None,
    ) -> None:
        self._loop = loop
        self._cluster = cluster
        self._programs = programs
        self._timeline = timeline
        self._on_begin = on_begin
        self._in_force = 0

    @property
    def are_in_force(self) -> bool:
        """Whether any is under way, brokers that shut down or start among them."""
        cluster = self._cluster
        return bool(self._in_force or cluster.shutting_down or cluster.starting)

    def schedule(self, actions: Iterable[Action]) -> None:
        """Carry each action out when its time has come, counted from now. Raises ScheduleError."""
        for action in actions:
            begin = partial(self._begin, action, self._bound(action))
            self._loop.call_later(action.at_ms / 1000, begin)

    def _bound(self, action: Action) -> Callable[[], Undo | None]:
        """Return what carries the action out; ScheduleError if it cannot mean anything."""
        kind = KINDS.get(action.kind)
        if kind is None:
            raise ScheduleError(
                f"{action}: there is no kind {action.kind!r}; see {', '.join(KINDS)}"
            )
        method = getattr(self._programs if kind.on == "worker" else self._cluster, action.kind)
        values: list[Any] = [action.value] if kind.values else []
        if kind.on == BROKERS and action.on in {(), (BROKERS,)}:
            return partial(method, None, *values)
        place, _, number = (action.on[0] if action.on else "").partition("-")
        wanted = kind.on.removesuffix("s")
        if place != wanted or not number.isdecimal():
            raise ScheduleError(f"{action}: say on which {wanted}, as {wanted}-1")
        if kind.whole_side:
            values.insert(0, action.on[1] if len(action.on) > 1 else BROKERS)
        return partial(method, int(number), *values)

    def _begin(self, action: Action, carry_out: Callable[[], Undo | None]) -> None:
        try:
            undo = carry_out()
        except (ApiError, UnknownBrokerError, WrongStateError) as error:
            self._timeline.note(FAULT, f"{action.describe()}: not done, {error}")
            return
        self._on_begin(action)
        self._timeline.note(FAULT, action.describe())
        if undo is not None:
            self._in_force += 1
            self._loop.call_later(action.for_ms / 1000, partial(self._end, action, undo))

    def _end(self, action: Action, undo: Undo) -> None:
        self._timeline.note(FAULT, f"end of {action.kind} {' '.join(action.on)}")
        undo()
        self._in_force -= 1
