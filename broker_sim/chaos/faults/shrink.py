"""The shrinker: minimizes a failing schedule as long as the same invariant is violated.

It leaves out actions, first half of them, then fewer at a time (delta debugging); applies the simplifications of
the kind of schedule; reduces latency and duration; and gives actions fewer targets, shorter durations and rounder
times. This repeats until nothing helps or the limits are reached.

Meanwhile a seeded order stays seeded: chance finds a bad order in each of these runs, while the deviations of one
run fit only its times. Then the deviations become part of the schedule, and as many as possible are left out. A
failure that needs another order of the threads of programs keeps the seeded order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from broker_sim.chaos.faults.action import BROKERS
from broker_sim.chaos.faults.kinds import KINDS
from broker_sim.chaos.faults.schedule import FaultSchedule
from broker_sim.minimize import Minimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker_sim_purgatory import Clock

    from broker_sim.chaos.faults.action import Action
    from broker_sim.runtime.virtual.task_order import Deviation

S = TypeVar("S", bound=FaultSchedule)
S_co = TypeVar("S_co", bound=FaultSchedule, covariant=True)

MAX_MS: Final = 60_000
"""Maximum real time of shrinking, in ms."""
MAX_TRIES: Final = 100
"""Maximum number of runs of shrinking."""
MAX_TRIES_OF_ORDERS: Final = 300
"""The same for a run with deviations, which has more items to leave out."""
UNIT_MS: Final = 1_000
"""Runs are shortened by multiples of this time."""
SHORTEST_MS: Final = 100
ROUND_MS: Final = (1_000, 500, 100)


class Ran(Protocol[S_co]):
    """The result of a finished run, of an application's test or a random run."""

    @property
    def schedule(self) -> S_co:
        """The schedule of the run."""

    @property
    def invariant(self) -> str | None:
        """The name of the violated invariant; None if the run passed."""

    @property
    def text(self) -> str:
        """The violated invariant in words; empty if the run passed."""

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """Points at which the run was not first in, first out."""


@dataclass(frozen=True, slots=True)
class Shrunk(Generic[S]):
    """The smallest schedule that was found, and the number of runs needed."""

    schedule: S
    tries: int


class _Shrinking(Minimizer[S]):
    """Keeps the smallest schedule with only those deviations that its run has taken."""

    def __init__(
        self, first: Ran[S], run: Callable[[S], Ran[S]], *, max_tries: int, max_ms: int, clock: Clock | None
    ) -> None:
        super().__init__(first.schedule, self._fails_alike, max_tries=max_tries, max_ms=max_ms, clock=clock)
        self._invariant = first.invariant
        self._run = run
        self._last = first
        self.taken = first.deviations

    def _fails_alike(self, candidate: S) -> bool:
        self._last = self._run(candidate)
        return self._last.invariant == self._invariant

    def accepts(self, candidate: S) -> bool:
        """Run a candidate; if it still fails it becomes the best one, without deviations that did not happen."""
        if not super().accepts(candidate):
            return False
        self.taken = self._last.deviations
        self.best = candidate.as_taken(self.taken)
        return True


def shrink(
    first: Ran[S],
    run: Callable[[S], Ran[S]],
    *simpler: Callable[[S], Iterable[S]],
    unit_ms: int = UNIT_MS,
    max_tries: int | None = None,
    max_ms: int = MAX_MS,
    clock: Clock | None = None,
) -> Shrunk[S]:
    """Return the smallest schedule found whose run still fails as `first` did.

    `simpler` are functions that yield simpler schedules. Time after the last action is cut in units of `unit_ms`.
    """
    if max_tries is None:
        max_tries = MAX_TRIES_OF_ORDERS if first.deviations else MAX_TRIES
    search = _Shrinking(first, run, max_tries=max_tries, max_ms=max_ms, clock=clock)
    steps: list[Callable[[S], Iterable[S]]] = [*simpler, partial(_quicker_runs, unit_ms), _simpler_actions]
    search.accepts(first.schedule.without_order())
    _make_smaller(search, steps)
    if search.accepts(search.best.in_order_of(search.taken)):
        _make_smaller(search, steps)
    return Shrunk(search.best, search.tries)


def _make_smaller(search: _Shrinking[S], steps: Iterable[Callable[[S], Iterable[S]]]) -> None:
    """Repeat all simplifications until the schedule gets no smaller."""
    before = None
    while search.best != before:
        before = search.best
        for name in search.best.LINES:
            _leave_items_out(search, name)
        for step in steps:
            search.simplify(step)


def _leave_items_out(search: _Shrinking[S], name: str) -> None:
    """Leave out items of that field as long as the rest still fails."""
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
    if kind.has_far_end and action.on[1:] != (BROKERS,):
        yield action._replace(on=(action.on[0], BROKERS))
    if kind.several and len(action.on) > 1:
        for name in action.on:
            yield action._replace(on=tuple(each for each in action.on if each != name))
    if action.for_ms > SHORTEST_MS:
        yield action._replace(for_ms=max(action.for_ms // 200 * 100, SHORTEST_MS))
    for unit_ms in ROUND_MS:
        if action.at_ms % unit_ms:
            yield action._replace(at_ms=action.at_ms // unit_ms * unit_ms)
