"""Makes the schedule of a random run that fails as small as it gets: with fewer actions, clients and brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.action import broker_name
from broker_sim.chaos.faults.shrink import MAX_MS, Shrunk, make_smaller
from broker_sim.chaos.random_run.run import RunFailedError, run_schedule
from broker_sim.minimize import Minimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim_purgatory import Clock

    from broker_sim.chaos.random_run.schedule import Schedule

MAX_TRIES: Final = 300


def failed_invariant(schedule: Schedule) -> str | None:
    """Run it and return the name of what did not hold; None if it passes."""
    try:
        run_schedule(schedule)
    except RunFailedError as error:
        return error.invariant
    return None


def shrink(
    schedule: Schedule,
    invariant: str,
    *,
    run: Callable[[Schedule], str | None] = failed_invariant,
    max_tries: int = MAX_TRIES,
    max_ms: int = MAX_MS,
    clock: Clock | None = None,
) -> Shrunk[Schedule]:
    """Return the smallest schedule found for which `run` still returns `invariant`.

    It stops after `max_tries` runs or `max_ms` of real time.
    """
    search = Minimizer(
        schedule, lambda candidate: run(candidate) == invariant, max_tries=max_tries, max_ms=max_ms, clock=clock
    )
    return make_smaller(search, _fewer_clients, _simpler_cluster)


def _fewer_clients(schedule: Schedule) -> Iterator[Schedule]:
    for name in ("producers", "transactional"):
        items = getattr(schedule, name)
        for index in range(len(items)):
            yield replace(schedule, **{name: items[:index] + items[index + 1 :]})
    for name in ("consumers", "group_members", "consumer_members", "streams_members"):
        if count := getattr(schedule, name):
            yield replace(schedule, **{name: count - 1})


def _simpler_cluster(schedule: Schedule) -> Iterator[Schedule]:
    if schedule.partitions > 1:
        yield replace(schedule, partitions=schedule.partitions - 1)
    if schedule.brokers > max(schedule.replication_factor, 2):
        last = broker_name(schedule.brokers)
        actions = tuple(each for each in schedule.actions if last not in each.on)
        yield replace(schedule, brokers=schedule.brokers - 1, actions=actions)
    if schedule.sync_ms:
        yield replace(schedule, sync_ms=0)
