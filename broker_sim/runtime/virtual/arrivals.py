"""Chooses which of the messages between brokers that take no time arrives first: the oldest one, or another one.

What a broker does depends on messages only, so two brokers meet where their messages reach the same node at the
same time. Messages over one link keep their order, as they do on a TCP connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.runtime.virtual.task_order import ARRIVAL, Deviation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from broker_sim.runtime.virtual.core.clock import LoopClock
    from broker_sim.runtime.virtual.meetings import Place

Link = tuple[int, int]
"""The node ids of sender and receiver."""


class ArrivalOrder:
    """Chooses for `Links.choose_arrival`, and keeps what deviated from first in, first out."""

    def __init__(self, clock: LoopClock) -> None:
        self.on_deviation: Callable[[Link, Link], object] | None = None
        """Called with the link of a message that arrives first, and with that of the oldest one."""
        self._clock = clock
        self._at_ns = -1
        self._step = 0
        self._deviations: list[Deviation] = []

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """All deviations so far."""
        return tuple(self._deviations)

    def choose(self, waiting: Sequence[Link]) -> int:
        """Return the place of the message that arrives next; 0 is the oldest."""
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

    def place_of_next(self, waiting: Sequence[Link], at: Place) -> int:
        """Return the place of the next message; `at` is the time and the number of choices at that time before."""
        raise NotImplementedError


class GivenArrivals(ArrivalOrder):
    """Takes given deviations, as far as there is a message at their place that may arrive first."""

    def __init__(self, clock: LoopClock, deviations: Iterable[Deviation]) -> None:
        super().__init__(clock)
        self._given = {(each.at_ns, each.step): each.place for each in deviations if each.what == ARRIVAL}

    def place_of_next(self, waiting: Sequence[Link], at: Place) -> int:
        """Return the given place, if no older message goes the same way and the oldest one to the same node."""
        place = self._given.get(at, 0)
        if place < len(waiting) and waiting[place] in _meeting(waiting):
            return waiting.index(waiting[place])
        return 0


class _Meeting(NamedTuple):
    """A message that has arrived while others were on their way to the same node."""

    at: Place
    others: tuple[str, ...]
    """Their senders."""


class MeetingArrivals(ArrivalOrder):
    """First in, first out, but where another broker's message is to arrive first.

    `first` names its sender by the time and the step.
    """

    has_missed = False
    """Always False: `first` names only messages that can arrive."""

    def __init__(self, clock: LoopClock, first: Mapping[Place, str]) -> None:
        super().__init__(clock)
        self._first = first
        self._meetings: list[_Meeting] = []

    def place_of_next(self, waiting: Sequence[Link], at: Place) -> int:
        """Return the place of the sender's oldest message, and note who else could have been first."""
        links = _meeting(waiting)
        link_of_turn = links[0]
        for link in links:
            if str(link[0]) == self._first.get(at):
                link_of_turn = link
        others = tuple(str(source) for source, _ in links if source != link_of_turn[0])
        self._meetings.append(_Meeting(at, others if at not in self._first else ()))
        return waiting.index(link_of_turn)

    def changes(self, behind: int) -> Iterator[tuple[Place, str, int]]:
        """Yield what other senders could be first, as `MeetingOrder.changes` does for processes."""
        for index in range(behind, len(self._meetings)):
            at, others = self._meetings[index]
            for other in others:
                yield at, other, index + 1


def _meeting(waiting: Sequence[Link]) -> list[Link]:
    """Return the link of the oldest message, and others that lead to the same node."""
    return list(dict.fromkeys(link for link in waiting if link[1] == waiting[0][1]))
