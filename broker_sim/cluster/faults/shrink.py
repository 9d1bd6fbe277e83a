"""Makes a schedule that fails as small as it gets, as long as the same invariant fails: what all have in common.

Actions are left out, half of them and then fewer at a time (delta debugging); then they concern fewer,
get shorter and begin at rounder times, and the run gets shorter and its messages quicker.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from broker_sim.cluster.faults.action import BROKERS
from broker_sim.cluster.faults.kinds import KINDS
from broker_sim.cluster.faults.schedule import FaultSchedule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.cluster.faults.action import Action
    from broker_sim.minimize import Minimizer

__all__ = ["MAX_MS", "Shrunk", "leave_actions_out", "shorter_runs", "simpler_actions"]

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


def leave_actions_out(search: Minimizer[S]) -> None:
    """Leave actions out as long as the rest still fails."""
    search.leave_out(
        lambda each: each.actions, lambda each, rest: replace(each, actions=tuple(rest))
    )


def shorter_runs(schedule: S, unit_ms: int) -> Iterator[S]:
    """Yield it without latency, and with less time behind its last action, in whole units."""
    if schedule.latency_ms:
        yield replace(schedule, latency_ms=0)
        yield replace(schedule, latency_ms=schedule.latency_ms // 2)
    ends_ms = [action.at_ms + action.for_ms for action in schedule.actions]
    shortest_ms = -(-max(ends_ms, default=0) // unit_ms) * unit_ms
    if shortest_ms < schedule.duration_ms:
        yield replace(schedule, duration_ms=shortest_ms)


def simpler_actions(schedule: S) -> Iterator[S]:
    """Yield it with one of its actions made simpler."""
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
