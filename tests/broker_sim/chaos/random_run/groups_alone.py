"""Runs of one group alone, of either protocol, and a defect that both have to find."""

from broker_sim.chaos.faults.action import broker_name
from broker_sim.chaos.random_run import Action, Schedule
from broker_sim.coordinator.runtime import CoordinatorContext
from broker_sim.errors import ErrorCode

from .outcomes import failed_invariant

MOVES = [Action(1_000 + 700 * n, "move_groups", (broker_name(n % 3 + 1),)) for n in range(6)]
"""They give the group one coordinator after the other."""
KILLS = [Action(1_000 + 2_500 * n, "kill", (broker_name(n + 1),), 1_500) for n in range(3)]
CUTS = [
    Action(1_000, "move_groups", ("broker-1",)),
    *[Action(at, "isolate", ("broker-1",), 1_800) for at in (1_500, 4_500)],
]


def group_of(*actions, duration_ms=6_000, seed=1, **members):
    """Return a run of a group alone; `members` is their number, by their field of the schedule."""
    return Schedule(
        seed,
        partitions=3,
        producers=(),
        consumers=0,
        duration_ms=duration_ms,
        actions=tuple(sorted(actions)),
        **members,
    )


class GroupRuns:
    """Runs of groups of four: with nothing else, and with a coordinator that changes."""

    def __init__(self, field):
        members = {field: 4}
        self.calm = [group_of(seed=seed, **members) for seed in range(4)]
        self.moved = [group_of(*MOVES, seed=seed, **members) for seed in range(6)]
        self.killed = [group_of(*KILLS, duration_ms=9_000, seed=seed, **members) for seed in range(4)]
        self.cut_off = [group_of(*CUTS, duration_ms=8_000, seed=seed, **members) for seed in range(8)]


def writes_are_answered_before_the_replicas_have_them(monkeypatch):
    """Commits, epochs and assignments count as soon as the leader has them."""
    original = CoordinatorContext.carry_out

    def carry_out(self, result, on_response=lambda _: None, *arguments):
        if result.shares_batch:
            original(self, result, on_response, *arguments)
            return
        response, settled = result.response, result.on_settled
        result.response = result.on_settled = None
        original(self, result, on_response, *arguments)
        if settled is not None:
            settled(ErrorCode.NONE)
        if response is not None:
            on_response(response)

    monkeypatch.setattr(CoordinatorContext, "carry_out", carry_out)


def first_failure(schedules):
    """Return the invariant that the first of the runs fails with, None if all pass."""
    return next(filter(None, map(failed_invariant, schedules)), None)
