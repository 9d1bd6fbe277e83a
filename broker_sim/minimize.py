"""Minimizes a failing input by leaving out everything that the failure does not need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from broker_sim_purgatory import Clock, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Candidate = TypeVar("Candidate")
Item = TypeVar("Item")


class Minimizer(Generic[Candidate]):
    """Keeps the smallest candidate so far that still fails.

    `still_fails(candidate)` runs a candidate and returns whether it fails in the same way. At most `max_tries` are
    run, and none after `max_ms` of real time (default: no limit).
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
        """Run a candidate; return whether it still fails, which makes it the new best."""
        if self.is_over or candidate == self.best:
            return False
        self.tries += 1
        if not self._still_fails(candidate):
            return False
        self.best = candidate
        return True

    def simplify(self, simpler: Callable[[Candidate], Iterable[Candidate]]) -> None:
        """Repeatedly replace the best candidate by the first simpler one that still fails."""
        while any(self.accepts(candidate) for candidate in simpler(self.best)):
            pass

    def leave_out(
        self, items: Callable[[Candidate], Sequence[Item]], with_items: Callable[[Candidate, Sequence[Item]], Candidate]
    ) -> None:
        """Leave items out, first half of them at a time, then fewer (delta debugging)."""
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
