"""Random runs of the simulator itself, for a search: schedules of seeds, their runs, and simpler schedules."""

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
    """End of a random run: a summary, or the violated invariant."""

    schedule: Schedule
    summary: RunSummary | None = None
    invariant: str | None = None
    text: str = ""
    deviations: tuple[()] = ()
    """Always empty: the order of random runs is fixed."""


@dataclass(frozen=True, slots=True)
class RandomRuns:
    """Random runs with that many virtual ms of faults, perhaps with power failures."""

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
    """Yield schedules with one client fewer."""
    for name in ("producers", "transactional"):
        items = getattr(schedule, name)
        for index in range(len(items)):
            yield replace(schedule, **{name: items[:index] + items[index + 1 :]})
    for name in ("consumers", "group_members", "consumer_members", "streams_members", "share_members"):
        if count := getattr(schedule, name):
            yield replace(schedule, **{name: count - 1})


def simpler_cluster(schedule: Schedule) -> Iterator[Schedule]:
    """Yield schedules with one partition or broker fewer, or with faster disks."""
    if schedule.partitions > 1:
        yield replace(schedule, partitions=schedule.partitions - 1)
    if schedule.brokers > max(schedule.replication_factor, 2):
        last = broker_name(schedule.brokers)
        actions = tuple(each for each in schedule.actions if last not in each.on)
        yield replace(schedule, brokers=schedule.brokers - 1, actions=actions)
    if schedule.sync_ms:
        yield replace(schedule, sync_ms=0)
