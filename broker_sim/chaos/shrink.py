"""Makes the schedule of a test that fails as small as it gets, with its order of tasks.

The order of a seeded run stays seeded meanwhile: chance finds a bad order in each of these runs, while
given deviations only fit the times of one. Then they are given, and as many as possible are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.shrink import MAX_MS, Shrunk, make_smaller
from broker_sim.minimize import Minimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.chaos.run import Outcome
    from broker_sim.chaos.schedule import Schedule

MAX_TRIES: Final = 100
MAX_TRIES_OF_ORDERS: Final = 300
"""With deviations there is more to leave out."""
UNIT_MS: Final = 1_000
"""Runs get shorter in whole units."""


class _Search(Minimizer["Schedule"]):
    """Keeps the smallest schedule, and of its deviations those that its run has taken."""

    def __init__(self, first: Outcome, run: Callable[[Schedule], Outcome], *, max_tries: int, max_ms: int) -> None:
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
    first: Outcome, run: Callable[[Schedule], Outcome], *, max_tries: int | None = None, max_ms: int = MAX_MS
) -> Shrunk[Schedule]:
    """Return the smallest schedule found whose run still fails as the first one did."""
    if max_tries is None:
        max_tries = MAX_TRIES_OF_ORDERS if first.deviations else MAX_TRIES
    search = _Search(first, run, max_tries=max_tries, max_ms=max_ms)
    if first.deviations:
        search.accepts(replace(first.schedule, order="fifo", deviations=()))
    make_smaller(search, unit_ms=UNIT_MS)
    if search.best.order != "fifo":
        search.give_order()
        make_smaller(search, unit_ms=UNIT_MS)
    return Shrunk(search.best, search.tries)
