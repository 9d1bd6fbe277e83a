"""Makes a schedule that fails as small as it gets, as long as the same invariant fails.

First actions are left out; then the run gets simpler: no latency, fewer brokers; then actions get
shorter and begin at rounder times. All of it again until nothing helps or the limits are reached.

The order of a seeded run stays seeded meanwhile: chance finds a bad order in each of these runs, while
given deviations only fit the times of one. Then they are given, and as many as possible are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from broker_sim.chaos.kinds import BROKERS, KINDS
from broker_sim.minimize import Minimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.chaos.run import Outcome
    from broker_sim.chaos.schedule import Action, Schedule

__all__ = ["Shrunk", "shrink"]

MAX_TRIES: Final = 100
MAX_TRIES_OF_ORDERS: Final = 300
"""With deviations there is more to leave out."""
MAX_MS: Final = 60_000
SHORTEST_MS: Final = 100
ROUND_MS: Final = (1_000, 500, 100)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest schedule that was found, and how many were run for it."""

    schedule: Schedule
    tries: int


class _Search(Minimizer["Schedule"]):
    """Keeps the smallest schedule, and of its deviations those that its run has taken."""

    def __init__(
        self, first: Outcome, run: Callable[[Schedule], Outcome], *, max_tries: int, max_ms: int
    ) -> None:
        super().__init__(first.schedule, self._fails_alike, max_tries=max_tries, max_ms=max_ms)
        self._invariant = first.invariant
        self._run = run
        self._last = first
        self.taken = first.deviations

    def _fails_alike(self, candidate: Schedule) -> bool:
        self._last = self._run(candidate)
        return self._last.invariant == self._invariant

    def accepts(self, candidate: Schedule) -> bool:
        """Run a candidate; if it still fails it is the best one, without what did not happen."""
        if not super().accepts(candidate):
            return False
        self.taken = self._last.deviations
        if candidate.order == "fifo":
            self.best = replace(candidate, deviations=self.taken)
        return True

    def give_order(self) -> None:
        """Give the deviations that chance has taken: the run is the same."""
        self.best = replace(self.best, order="fifo", deviations=self.taken)


def shrink(
    first: Outcome,
    run: Callable[[Schedule], Outcome],
    *,
    max_tries: int | None = None,
    max_ms: int = MAX_MS,
) -> Shrunk:
    """Return the smallest schedule found whose run still fails as the first one did."""
    if max_tries is None:
        max_tries = MAX_TRIES_OF_ORDERS if first.deviations else MAX_TRIES
    search = _Search(first, run, max_tries=max_tries, max_ms=max_ms)
    if first.deviations:
        search.accepts(replace(first.schedule, order="fifo", deviations=()))
    _leave_out(search)
    if search.best.order != "fifo":
        search.give_order()
        _leave_out(search)
    return Shrunk(search.best, search.tries)


def _leave_out(search: _Search) -> None:
    before = None
    while search.best != before:
        before = search.best
        search.leave_out(
            lambda each: each.actions, lambda each, rest: replace(each, actions=tuple(rest))
        )
        search.leave_out(
            lambda each: each.deviations, lambda each, rest: replace(each, deviations=tuple(rest))
        )
        search.simplify(_simpler_run)
        search.simplify(_simpler_actions)


def _simpler_run(schedule: Schedule) -> Iterator[Schedule]:
    if schedule.latency_ms:
        yield replace(schedule, latency_ms=0)
        yield replace(schedule, latency_ms=schedule.latency_ms // 2)
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
