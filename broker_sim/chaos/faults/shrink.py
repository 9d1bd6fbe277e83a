"""Makes a schedule that fails as small as it gets, as long as the same invariant fails.

First actions are left out, half of them and then fewer at a time (delta debugging); then its kind of
schedule gets simpler; then messages get quicker and the run shorter; then actions concern fewer, get
shorter and begin at rounder times. All of it again until nothing helps or the limits are reached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from broker_sim.chaos.faults.action import BROKERS
from broker_sim.chaos.faults.kinds import KINDS
from broker_sim.chaos.faults.schedule import FaultSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker_sim.chaos.faults.action import Action
    from broker_sim.minimize import Minimizer

S = TypeVar("S", bound=FaultSchedule)

MAX_MS: Final = 60_000
"""So much real time a search takes at most."""
SHORTEST_MS: Final = 100
ROUND_MS: Final = (1_000, 500, 100)


@dataclass(frozen=True, slots=True)
class Shrunk(Generic[S]):
    """The smallest schedule that was found, and how many were run for it."""

    schedule: S
    tries: int

    def told(self, before: int) -> str:
        """Return how many faults there were and are left, and what that took."""
        return f"{before} faults -> {len(self.schedule.actions)}, in {self.tries} runs"


def make_smaller(search: Minimizer[S], *simpler: Callable[[S], Iterable[S]], unit_ms: int = 1) -> Shrunk[S]:
    """Let the search come to its smallest schedule; `simpler` yield simpler ones of its kind.

    The time behind the last action is left out in whole units.
    """
    steps: list[Callable[[S], Iterable[S]]] = [*simpler, partial(_quicker_runs, unit_ms), _simpler_actions]
    before = None
    while search.best != before:
        before = search.best
        for name in search.best.LINES:
            _leave_items_out(search, name)
        for step in steps:
            search.simplify(step)
    return Shrunk(search.best, search.tries)


def _leave_items_out(search: Minimizer[S], name: str) -> None:
    """Leave items of that field out as long as the rest still fails."""
    search.leave_out(
        lambda each: getattr(each, name),
        lambda each, rest: replace(each, **{name: tuple(rest)}),  # type: ignore[arg-type]
    )


def _quicker_runs(unit_ms: int, schedule: S) -> Iterator[S]:
    if schedule.latency_ms:
        yield replace(schedule, latency_ms=0)
        yield replace(schedule, latency_ms=schedule.latency_ms // 2)
    ends_ms = [action.at_ms + action.for_ms for action in schedule.actions]
    shortest_ms = -(-max(ends_ms, default=0) // unit_ms) * unit_ms
    if shortest_ms < schedule.duration_ms:
        yield replace(schedule, duration_ms=shortest_ms)


def _simpler_actions(schedule: S) -> Iterator[S]:
    for index, action in enumerate(schedule.actions):
        for simpler in _simpler(action):
            actions = [*schedule.actions]
            actions[index] = simpler
            yield replace(schedule, actions=tuple(sorted(actions)))


def _simpler(action: Action) -> Iterator[Action]:
    kind = KINDS[action.kind]
    if kind.whole_side and action.on[1:] != (BROKERS,):
        yield action._replace(on=(action.on[0], BROKERS))
    if kind.several and len(action.on) > 1:
        for name in action.on:
            yield action._replace(on=tuple(each for each in action.on if each != name))
    if action.for_ms > SHORTEST_MS:
        yield action._replace(for_ms=max(action.for_ms // 200 * 100, SHORTEST_MS))
    for unit_ms in ROUND_MS:
        if action.at_ms % unit_ms:
            yield action._replace(at_ms=action.at_ms // unit_ms * unit_ms)
