"""Random runs of the simulator itself, as a search sees them: schedules of seeds, their runs, and simpler ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.chaos.faults.action import broker_name
from broker_sim.chaos.faults.shrink import Shrunk, shrink
from broker_sim.chaos.random_run.run import RunFailedError, RunSummary, run_schedule
from broker_sim.chaos.random_run.schedule import DEFAULT_DURATION_MS, draw_schedule
from broker_sim.runtime.event_log import quiet_logs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.chaos.random_run.schedule import Schedule

MAX_TRIES: Final = 300
"""Maximum number of runs to shrink a schedule."""


class RandomOutcome(NamedTuple):
    """End of a random run: a summary, or the broken invariant."""

    schedule: Schedule
    summary: RunSummary | None = None
    invariant: str | None = None
    text: str = ""
    deviations: tuple[()] = ()
    """None: no order is left to chance."""


@dataclass(frozen=True, slots=True)
class RandomRuns:
    """Random runs of so many virtual milliseconds of faults, perhaps with power losses."""

    duration_ms: int = DEFAULT_DURATION_MS
    power_loss: bool = False

    def draw(self, seed: int) -> Schedule:
        """Return the schedule of a seed."""
        return draw_schedule(seed, duration_ms=self.duration_ms, power_loss=self.power_loss)

    def run(self, schedule: Schedule) -> RandomOutcome:
        """Run a schedule; its error is part of the outcome."""
        with quiet_logs():
            try:
                return RandomOutcome(schedule, run_schedule(schedule))
            except RunFailedError as error:
                return RandomOutcome(schedule, None, error.invariant, str(error))

    def shrink(self, first: RandomOutcome) -> Shrunk[Schedule]:
        """Return the smallest schedule found whose run fails as `first` did."""
        return shrink(first, self.run, fewer_clients, simpler_cluster, unit_ms=1, max_tries=MAX_TRIES)


def fewer_clients(schedule: Schedule) -> Iterator[Schedule]:
    """Yield schedules with one client less."""
    for name in ("producers", "transactional"):
        items = getattr(schedule, name)
        for index in range(len(items)):
            yield replace(schedule, **{name: items[:index] + items[index + 1 :]})
    for name in ("consumers", "group_members", "consumer_members", "streams_members", "share_members"):
        if count := getattr(schedule, name):
            yield replace(schedule, **{name: count - 1})


def simpler_cluster(schedule: Schedule) -> Iterator[Schedule]:
    """Yield schedules with a partition or a broker less, or disks that are faster."""
    if schedule.partitions > 1:
        yield replace(schedule, partitions=schedule.partitions - 1)
    if schedule.brokers > max(schedule.replication_factor, 2):
        last = broker_name(schedule.brokers)
        actions = tuple(each for each in schedule.actions if last not in each.on)
        yield replace(schedule, brokers=schedule.brokers - 1, actions=actions)
    if schedule.sync_ms:
        yield replace(schedule, sync_ms=0)
