"""Makes a schedule that fails as small as it gets, as long as the same invariant fails.

First actions are left out; then the run gets simpler: no latency, fewer brokers; then actions get
shorter and begin at rounder times. All of it again until nothing helps or the limits are reached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from broker_sim.chaos.kinds import BROKERS, KINDS
from broker_sim.minimize import Minimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.chaos.schedule import Action, Schedule

__all__ = ["Shrunk", "shrink"]

MAX_TRIES: Final = 100
MAX_MS: Final = 60_000
SHORTEST_MS: Final = 100
ROUND_MS: Final = (1_000, 500, 100)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest schedule that was found, and how many were run for it."""

    schedule: Schedule
    tries: int


def shrink(
    schedule: Schedule,
    invariant: str,
    run: Callable[[Schedule], str | None],
    *,
    max_tries: int = MAX_TRIES,
    max_ms: int = MAX_MS,
) -> Shrunk:
    """Return the smallest schedule found for which `run` still returns `invariant`."""
    search = Minimizer(
        schedule,
        lambda candidate: run(candidate) == invariant,
        max_tries=max_tries,
        max_ms=max_ms,
    )
    before = None
    while search.best != before:
        before = search.best
        search.leave_out(
            lambda each: each.actions, lambda each, rest: replace(each, actions=tuple(rest))
        )
        search.simplify(_simpler_run)
        search.simplify(_simpler_actions)
    return Shrunk(search.best, search.tries)


def _simpler_run(schedule: Schedule) -> Iterator[Schedule]:
    if schedule.latency_ms:
        yield replace(schedule, latency_ms=0)
    ends_ms = [action.at_ms + action.for_ms for action in schedule.actions]
    shortest_ms = -(-max(ends_ms, default=0) // 1_000) * 1_000
    if shortest_ms < schedule.duration_ms:
        yield replace(schedule, duration_ms=shortest_ms)


def _simpler_actions(schedule: Schedule) -> Iterator[Schedule]:
    for index, action in enumerate(schedule.actions):
        for simpler in _simpler(action):
            actions = [*schedule.actions]
            actions[index] = simpler
            yield replace(schedule, actions=tuple(sorted(actions)))


def _simpler(action: Action) -> Iterator[Action]:
    if KINDS[action.kind].whole_side and action.on[1:] != (BROKERS,):
        yield action._replace(on=(action.on[0], BROKERS))
    if action.for_ms > SHORTEST_MS:
        yield action._replace(for_ms=max(action.for_ms // 200 * 100, SHORTEST_MS))
    for unit_ms in ROUND_MS:
        if action.at_ms % unit_ms:
            yield action._replace(at_ms=action.at_ms // unit_ms * unit_ms)
