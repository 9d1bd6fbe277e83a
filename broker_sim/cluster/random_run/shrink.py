"""Makes a schedule that fails as small as it gets, as long as the same invariant fails.

First actions are left out, half of them and then fewer at a time (delta debugging); then clients,
partitions, brokers and latency; then times and durations get shorter and rounder. All of it again
until nothing helps or the limits are reached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from broker_sim.cluster.random_run.run import RunFailedError, run_schedule
from broker_sim.minimize import Minimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker_sim.cluster.random_run.faults.action import Action
    from broker_sim.cluster.random_run.schedule import Schedule
    from purgatory import Clock

__all__ = ["Shrunk", "failed_invariant", "shrink"]

MAX_TRIES: Final = 300
MAX_MS: Final = 60_000
ROUND_MS: Final = (1_000, 500, 100)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest schedule that was found, and how many were run for it."""

    schedule: Schedule
    tries: int


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
) -> Shrunk:
    """Return the smallest schedule found for which `run` still returns `invariant`.

    It stops after `max_tries` runs or `max_ms` of real time.
    """
    search = Minimizer(
        schedule,
        lambda candidate: run(candidate) == invariant,
        max_tries=max_tries,
        max_ms=max_ms,
        clock=clock,
    )
    before = None
    while search.best != before and not search.is_over:
        before = search.best
        search.leave_out(
            lambda each: each.actions, lambda each, rest: replace(each, actions=tuple(rest))
        )
        for simplify in (_fewer_clients, _simpler_cluster, _shorter_actions, _shorter_run):
            search.simplify(simplify)
    return Shrunk(search.best, search.tries)


def _fewer_clients(schedule: Schedule) -> Iterator[Schedule]:
    for index in range(len(schedule.producers)):
        yield replace(schedule, producers=_without(schedule.producers, index))
    if schedule.consumers:
        yield replace(schedule, consumers=schedule.consumers - 1)
    for index in range(len(schedule.transactional)):
        yield replace(schedule, transactional=_without(schedule.transactional, index))
    if schedule.group_members:
        yield replace(schedule, group_members=schedule.group_members - 1)
    if schedule.consumer_members:
        yield replace(schedule, consumer_members=schedule.consumer_members - 1)


def _simpler_cluster(schedule: Schedule) -> Iterator[Schedule]:
    if schedule.partitions > 1:
        last = schedule.partitions - 1
        actions = [a for a in schedule.actions if a.kind != "transfer" or a.on[0] < last]
        yield replace(schedule, partitions=last, actions=tuple(actions))
    if schedule.brokers > max(schedule.replication_factor, 2):
        actions = [a for a in schedule.actions if schedule.brokers not in _brokers(a)]
        yield replace(schedule, brokers=schedule.brokers - 1, actions=tuple(actions))
    if schedule.sync_ms:
        yield replace(schedule, sync_ms=0)
    if schedule.max_latency_ms:
        yield replace(schedule, max_latency_ms=0)


def _brokers(action: Action) -> Sequence[int]:
    return action.on[1:] if action.kind == "transfer" else action.on


def _shorter_actions(schedule: Schedule) -> Iterator[Schedule]:
    for index, action in enumerate(schedule.actions):
        for shorter in _shorter(action):
            actions = (*schedule.actions[:index], shorter, *schedule.actions[index + 1 :])
            yield replace(schedule, actions=tuple(sorted(actions)))


def _shorter(action: Action) -> Iterator[Action]:
    if action.kind == "lose_power" and len(action.on) > 1:
        for index in range(len(action.on)):
            yield action._replace(on=_without(action.on, index))
    if action.for_ms > 100:
        yield action._replace(for_ms=action.for_ms // 200 * 100)
    for unit_ms in ROUND_MS:
        if action.at_ms % unit_ms:
            yield action._replace(at_ms=action.at_ms // unit_ms * unit_ms)


def _shorter_run(schedule: Schedule) -> Iterator[Schedule]:
    ends_ms = [action.at_ms + action.for_ms for action in schedule.actions]
    shortest_ms = max(ends_ms, default=0)
    for duration_ms in (shortest_ms, (shortest_ms + schedule.duration_ms) // 200 * 100):
        if shortest_ms <= duration_ms < schedule.duration_ms:
            yield replace(schedule, duration_ms=duration_ms)


def _without(items: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    return items[:index] + items[index + 1 :]
