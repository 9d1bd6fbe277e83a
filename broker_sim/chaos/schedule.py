"""The schedule of a run: the timed faults of a cluster and its workers, as data and as text.

    seed=7 brokers=3 workers=2 latency_ms=5 duration_ms=20000
    3200 crash worker-1 for=3000
    8100 error broker-2 for=1000 value=Produce/NOT_LEADER_OR_FOLLOWER
    4100.5 order 3 1

A line `order` is a deviation from first in, first out: at that time, counted from the start of the run, after 3
callbacks, the next one to run is not the oldest but the one behind it. A third number is how many callbacks of its
process then run. A line `arrival` is the same for messages between brokers. The other lines are those of every
schedule.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, get_args

from broker_sim.chaos.faults.action import Action, ScheduleError
from broker_sim.chaos.faults.kinds import draw_action
from broker_sim.chaos.faults.plots import PLOTS, FaultScope, draw_plot
from broker_sim.chaos.faults.schedule import FaultSchedule
from broker_sim.chaos.faults.weights import weights_of
from broker_sim.runtime.virtual.loop import Order
from broker_sim.runtime.virtual.task_order import ARRIVAL, ORDER, Deviation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DEFAULT_DURATION_MS: Final = 20_000
"""Default duration in ms in which faults happen, from the call of `faults_over` on."""
MAX_FAULTS: Final = 10
DURATIONS_MS: Final = (100, 1_000, 3_000, 8_000, 12_000)
"""Durations in ms from short hiccups to more than session and request timeouts."""
LATENCIES_MS: Final = (0, 5, 20)


@dataclass(frozen=True, slots=True)
class Schedule(FaultSchedule):
    """One run of a test, with its workers. Raises ScheduleError for an action on a worker that does not exist."""

    HEAD: ClassVar = ("seed", "brokers", "workers", "latency_ms", "duration_ms")
    LINES: ClassVar = ("actions", "deviations")
    CHOICES: ClassVar = MappingProxyType({ORDER: get_args(Order)})

    duration_ms: int = DEFAULT_DURATION_MS
    workers: int = 2
    order: Order = "fifo"
    """The ready task that runs first: the oldest ("fifo"), or a random one ("seeded")."""
    deviations: tuple[Deviation, ...] = ()
    """Points at which a run in the order "fifo" runs another callback than the oldest."""

    def __post_init__(self) -> None:
        FaultSchedule.__post_init__(self)
        names = [f"worker-{number}" for number in range(1, self.workers + 1)]
        for action in self.actions:
            for name in action.on:
                if name.startswith("worker-") and name not in names:
                    raise ScheduleError(
                        f"{action}: unknown worker {name!r}; workers={self.workers} are {', '.join(names)}"
                    )

    def as_taken(self, deviations: Sequence[Deviation]) -> Self:
        """Return the schedule with the deviations of its run; a seeded schedule stays as it is."""
        return self if self.order == "seeded" else replace(self, deviations=tuple(deviations))

    def in_order_of(self, deviations: Sequence[Deviation]) -> Self:
        """Return the schedule with the random order of a seeded run made explicit."""
        return self if self.order == "fifo" else replace(self, order="fifo", deviations=tuple(deviations))

    def without_order(self) -> Self:
        """Return the schedule in first in, first out order."""
        return replace(self, order="fifo", deviations=())

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


def draw_schedule(
    seed: int,
    *,
    faults: Iterable[str] | Mapping[str, float] | None = None,
    brokers: int = 3,
    workers: int = 2,
    duration_ms: int = DEFAULT_DURATION_MS,
    most_faults: int = MAX_FAULTS,
    latency_ms: int | None = None,
    order: Order = "fifo",
) -> Schedule:
    """Return the schedule of a seed: 1 to `most_faults` kinds and plots, drawn by weight (`weights_of`).

    The maximum latency is `latency_ms` (default: drawn).
    """
    rng = random.Random(f"{seed}/chaos")
    weights = weights_of(faults)
    kinds = rng.choices(list(weights), list(weights.values()), k=rng.randint(1, most_faults))
    scope = FaultScope(brokers, partitions=1, duration_ms=duration_ms, workers=workers)
    actions = []
    for kind in kinds:
        if kind in PLOTS:
            actions += draw_plot(rng, kind, scope)
        else:
            actions.append(
                draw_action(
                    rng, kind, brokers=brokers, workers=workers, duration_ms=duration_ms, durations_ms=DURATIONS_MS
                )
            )
    return Schedule(
        seed,
        brokers=brokers,
        workers=workers,
        latency_ms=rng.choice(LATENCIES_MS) if latency_ms is None else latency_ms,
        duration_ms=duration_ms,
        actions=tuple(sorted(actions)),
        order=order,
    )
