"""Runs a test in all orders in which its workers can take their turns, up to a limit.

A run is repeated with another worker going first at one of its turns, then at two turns, and so on: so the first
order that fails has the fewest changes. Each order is run once (`ExploredOrder` defines turns). The same for messages
of several brokers that arrive at another broker at the same time (`ExploredArrivals`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.chaos.run import Outcome
    from broker_sim.runtime.virtual.explored_order import SchedulingPoint


@dataclass(frozen=True, slots=True)
class Exploration:
    """The number of orders that were run, and the first failure."""

    orders: int
    is_complete: bool
    """Whether all orders were run."""
    changes: int
    """All orders with up to this number of changes against first in, first out were run, if none failed."""
    failure: Outcome | None = None

    def __str__(self) -> str:
        orders = f"{self.orders:,} order{'s' if self.orders != 1 else ''}".replace(",", " ")
        if self.failure is not None:
            return f"{orders} explored, the last one fails"
        if self.is_complete:
            return f"{orders} explored, all"
        return (
            f"stopped after {orders}: there are more; all with at most {self.changes} "
            f"change{'s' if self.changes != 1 else ''} were explored"
        )


class _Order(NamedTuple):
    """The order of the workers at some turns; turns before `behind` are those of the order that this one modifies."""

    first: tuple[tuple[SchedulingPoint, str], ...] = ()
    behind: int = 0


def explore(run: Callable[[Mapping[SchedulingPoint, str]], Outcome | None], max_runs: int) -> Exploration:
    """Run all orders, at most `max_runs`, until one fails; `run(going_first)` runs one (None: it did not begin)."""
    waiting = deque([_Order()])
    orders = runs = changes = 0
    while waiting and runs < max_runs:
        order = waiting.popleft()
        changes = len(order.first)
        outcome = run(dict(order.first))
        runs += 1
        if outcome is None or (races := outcome.races) is None:
            return Exploration(orders, is_complete=False, changes=changes)
        if races.has_missed:
            continue
        orders += 1
        if outcome.invariant is not None:
            schedule = replace(outcome.schedule, deviations=outcome.deviations)
            failed = replace(outcome, schedule=schedule)
            return Exploration(orders, is_complete=False, changes=changes, failure=failed)
        for place, other, behind in races.changes(order.behind):
            if len(waiting) > max_runs:
                break
            waiting.append(_Order((*order.first, (place, other)), behind))
    if waiting and len(waiting[0].first) == changes:
        changes -= 1  # not all orders with this number of changes were run
    return Exploration(orders, is_complete=not waiting, changes=changes)
