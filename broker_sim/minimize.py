"""Makes something that fails as small as it gets: what remains is what the failure needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from broker_sim_purgatory import Clock, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Candidate = TypeVar("Candidate")
Item = TypeVar("Item")


class Minimizer(Generic[Candidate]):
    """Keeps the smallest candidate so far that still fails.

    `still_fails(candidate)` runs one and tells whether it fails in the same way. After `max_tries` of
    them, or `max_ms` of real time if there is such a limit, no more are run.
    """

    def __init__(
        self,
        first: Candidate,
        still_fails: Callable[[Candidate], bool],
        *,
        max_tries: int,
        max_ms: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.best = first
        self.tries = 0
        self._still_fails = still_fails
        self._max_tries = max_tries
        self._clock = clock or SystemClock()
        self._end_ms = None if max_ms is None else self._clock.now_ms() + max_ms

    @property
    def is_over(self) -> bool:
        """Whether a limit is reached."""
        is_late = self._end_ms is not None and self._clock.now_ms() >= self._end_ms
        return self.tries >= self._max_tries or is_late

    def accepts(self, candidate: Candidate) -> bool:
        """Run a candidate; if it still fails it is the best one from now on."""
        if self.is_over or candidate == self.best:
            return False
        self.tries += 1
        if not self._still_fails(candidate):
            return False
        self.best = candidate
        return True

    def simplify(self, simpler: Callable[[Candidate], Iterable[Candidate]]) -> None:
        """Go on to the first of the simpler ones that still fails, and from there again."""
        while any(self.accepts(candidate) for candidate in simpler(self.best)):
            pass

    def leave_out(
        self, items: Callable[[Candidate], Sequence[Item]], with_items: Callable[[Candidate, Sequence[Item]], Candidate]
    ) -> None:
        """Leave items out, half of them and then fewer at a time (delta debugging)."""
        size = max(1, len(items(self.best)) // 2)
        while True:
            begin = 0
            while begin < len(present := items(self.best)):
                rest = [*present[:begin], *present[begin + size :]]
                if not self.accepts(with_items(self.best, rest)):
                    begin += size
            if size == 1:
                return
            size = max(1, min(size, len(items(self.best))) // 2)
