"""What is done to a cluster and to the workers beside it, and when: as data, and as text.

    seed=7 brokers=3 workers=2 latency_ms=5 duration_ms=20000
    3200 crash worker-1 for=3000
    8100 error broker-2 for=1000 value=Produce/NOT_LEADER_OR_FOLLOWER
    4100.5 order 3 1

A line `order` says where the run deviates from first in, first out: at that time, counted from the start
of the run, after 3 callbacks, the next one is not the oldest but the one behind it. A third number says
that so many of its process run then. A line `arrival` says the same of messages between brokers. The other
lines are those of every schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_args

from broker_sim.chaos.faults.action import Action, ScheduleError
from broker_sim.chaos.faults.schedule import FaultSchedule
from broker_sim.runtime.virtual.loop import Order
from broker_sim.runtime.virtual.task_order import ARRIVAL, ORDER, Deviation

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_DURATION_MS: Final = 20_000
"""In this time faults happen, from the call of `faults_over`."""


@dataclass(frozen=True, slots=True)
class Schedule(FaultSchedule):
    """One run of a test, with its workers. Raises ScheduleError for an action on one that it does not have."""

    HEAD: ClassVar = ("seed", "brokers", "workers", "latency_ms", "duration_ms")
    LINES: ClassVar = ("actions", "deviations")
    CHOICES: ClassVar = MappingProxyType({ORDER: get_args(Order)})

    duration_ms: int = DEFAULT_DURATION_MS
    workers: int = 2
    order: Order = "fifo"
    """With "seeded" chance chooses among the tasks that are ready."""
    deviations: tuple[Deviation, ...] = ()
    """Where a run that is not seeded runs another callback than the oldest."""

    def __post_init__(self) -> None:
        FaultSchedule.__post_init__(self)
        names = [f"worker-{number}" for number in range(1, self.workers + 1)]
        for action in self.actions:
            for name in action.on:
                if name.startswith("worker-") and name not in names:
                    raise ScheduleError(f"{action}: there is no {name}: workers={self.workers} are {', '.join(names)}")

    @classmethod
    def _read_lines(cls, lines: Sequence[str]) -> dict[str, Any]:
        orders = [line for line in lines if line.split()[1:2] in ([ORDER], [ARRIVAL])]
        actions = [line for line in lines if line not in orders]
        return {
            "actions": tuple(sorted(map(Action.parse, actions))),
            "deviations": tuple(sorted(map(_parse_deviation, orders))),
        }


def _parse_deviation(line: str) -> Deviation:
    try:
        return Deviation.parse(line)
    except ValueError as error:
        raise ScheduleError(str(error)) from None
