"""Chooses which of the broker messages without latency arrives first: the oldest one, or another one.

Brokers act on messages only, so the order between two brokers matters where their messages reach the same node at
the same time. Messages on one link keep their order, as on a TCP connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.runtime.virtual.task_order import ARRIVAL, Deviation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from broker_sim.runtime.virtual.core.clock import LoopClock
    from broker_sim.runtime.virtual.explored_order import SchedulingPoint

Link = tuple[int, int]
"""Node ids of sender and receiver."""


class ArrivalOrder:
    """Implements `Links.choose_arrival`; subclasses choose, and deviations from first in, first out are recorded."""

    def __init__(self, clock: LoopClock) -> None:
        self.on_deviation: Callable[[Link, Link], object] | None = None
        """Called at a deviation with the link of the message that arrives first, and the link of the oldest one."""
        self._clock = clock
        self._at_ns = -1
        self._step = 0
        self._deviations: list[Deviation] = []

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """All deviations so far."""
        return tuple(self._deviations)

    def choose(self, waiting: Sequence[Link]) -> int:
        """Return the index of the message that arrives next; 0 is the oldest."""
        if self._at_ns != self._clock.now_ns:
            self._at_ns = self._clock.now_ns
            self._step = 0
        place = self.place_of_next(waiting, (self._at_ns, self._step))
        if place:
            self._deviations.append(Deviation(self._at_ns, self._step, place, what=ARRIVAL))
            if self.on_deviation is not None:
                self.on_deviation(waiting[place], waiting[0])
        self._step += 1
        return place

    def place_of_next(self, waiting: Sequence[Link], at: SchedulingPoint) -> int:
        """Return the index of the next message; `at` is the time and the number of earlier choices at that time."""
        raise NotImplementedError


class GivenArrivals(ArrivalOrder):
    """Repeats given deviations; one is skipped if no message at its index may arrive first."""

    def __init__(self, clock: LoopClock, deviations: Iterable[Deviation]) -> None:
        super().__init__(clock)
        self._given = {(each.at_ns, each.step): each.place for each in deviations if each.what == ARRIVAL}

    def place_of_next(self, waiting: Sequence[Link], at: SchedulingPoint) -> int:
        """Return the oldest message on the given one's link, or 0 if the oldest message has another receiver."""
        place = self._given.get(at, 0)
        if place < len(waiting) and waiting[place] in _racing_links(waiting):
            return waiting.index(waiting[place])
        return 0


class _Race(NamedTuple):
    """A message that arrived while other senders' messages were on their way to the same node."""

    at: SchedulingPoint
    others: tuple[str, ...]
    """Their senders."""


class ExploredArrivals(ArrivalOrder):
    """First in, first out, except where another broker's message is to arrive first.

    `first` maps the time and step of a choice to that broker.
    """

    has_missed = False
    """Always False: `first` names only messages that can arrive."""

    def __init__(self, clock: LoopClock, first: Mapping[SchedulingPoint, str]) -> None:
        super().__init__(clock)
        self._first = first
        self._races: list[_Race] = []

    def place_of_next(self, waiting: Sequence[Link], at: SchedulingPoint) -> int:
        """Return the index of the chosen sender's oldest message, and record which others could have been first."""
        links = _racing_links(waiting)
        link_of_turn = links[0]
        for link in links:
            if str(link[0]) == self._first.get(at):
                link_of_turn = link
        others = tuple(str(source) for source, _ in links if source != link_of_turn[0])
        self._races.append(_Race(at, others if at not in self._first else ()))
        return waiting.index(link_of_turn)

    def changes(self, behind: int) -> Iterator[tuple[SchedulingPoint, str, int]]:
        """Yield the other senders that could be first, as `ExploredOrder.changes` does for processes."""
        for index in range(behind, len(self._races)):
            at, others = self._races[index]
            for other in others:
                yield at, other, index + 1


def _racing_links(waiting: Sequence[Link]) -> list[Link]:
    """Return the link of the oldest message, and the other links that lead to the same node."""
    return list(dict.fromkeys(link for link in waiting if link[1] == waiting[0][1]))
