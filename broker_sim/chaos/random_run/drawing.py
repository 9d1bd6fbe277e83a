"""Draws the faults of a run, independent of its clients.

A run has plots (`faults.plots`) and single faults. Each run leaves out most kinds of both: the others then happen
often, and nothing else masks their consequences ("swarm testing").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.action import GROUPS, TRANSACTIONS, broker_names
from broker_sim.chaos.faults.kinds import KINDS, draw_action
from broker_sim.chaos.faults.plots import FAULT_DURATIONS_MS, FaultScope, Plot, Plots, within

if TYPE_CHECKING:
    import random

    from broker_sim.chaos.faults.action import Action

MAX_ACTIONS: Final = 30


_STOPPING: Final = (
    "pause", "kill", "stop", "isolate", "cut_link", "slow_link", "deaf", "mute", "shift_clock", "transfer"
)  # fmt: skip
_NOT_DRAWN: Final = ("lose_power", "hold", "damage")
"""Kinds that happen only if a schedule names them, or with simulated disks."""
_HINDERING: Final = tuple(
    name for name, kind in KINDS.items() if not kind.is_of_workers and name not in {*_STOPPING, *_NOT_DRAWN}
)
"""Kinds that are drawn in addition to the others, not in their place."""
HINDERED_SHARE: Final = 0.4
MAX_HINDRANCES: Final = 3
_OF_COORDINATORS: Final = {
    "move_groups": GROUPS, "move_transactions": TRANSACTIONS, "rebalance": GROUPS
}  # fmt: skip
"""Kinds that need clients of a coordinator."""
TOGETHER_SHARE: Final = 0.35


_PLOTS: Final[tuple[Plot, ...]] = (
    Plots.deaf_followers,
    Plots.deaf_followers,
    Plots.alone,
    Plots.alone,
    Plots.failovers,
    Plots.deposed,
    Plots.unheard,
    Plots.transfers,
    Plots.restarts,
    Plots.slow_replicas,
    Plots.late_controller,
)


def draw_faults(rng: random.Random, scope: FaultScope) -> list[Action]:
    """Return the actions of a run, in the order of their time; all end within it."""
    drawn = Plots(rng, scope)
    plots = [*_PLOTS, *([Plots.coordinator] * 3 if scope.coordinators else [])]
    plots = rng.sample(plots, rng.choice((1, 1, 2, 3)))
    kinds = rng.sample(_STOPPING, rng.randint(1, 4))
    actions: list[Action] = []
    for _ in range(rng.choice((1, 2, 2, 3))):
        begin_ms = drawn.ms(200, max(201, scope.duration_ms * 2 // 3))
        actions += rng.choice(plots)(drawn, begin_ms)
    while len(actions) < MAX_ACTIONS and rng.random() < 0.5:
        actions += _single(rng, scope, rng.choice(kinds))
    if rng.random() < HINDERED_SHARE:
        actions += _hindrances(rng, scope)
    return within(actions[:MAX_ACTIONS], scope.duration_ms)


def _hindrances(rng: random.Random, scope: FaultScope) -> list[Action]:
    there = {None, *scope.coordinators}
    possible = [kind for kind in _HINDERING if _OF_COORDINATORS.get(kind) in there]
    kinds = rng.choices(possible, k=rng.randint(1, MAX_HINDRANCES))
    return [action for kind in kinds for action in _single(rng, scope, kind)]


def _single(rng: random.Random, scope: FaultScope, kind: str) -> list[Action]:
    """Return one action, or the same one on several brokers at the same moment."""
    action = draw_action(
        rng, kind, brokers=scope.brokers, duration_ms=scope.duration_ms, durations_ms=FAULT_DURATIONS_MS
    )
    if KINDS[kind].on != "broker" or not action.for_ms or rng.random() >= TOGETHER_SHARE:
        return [action]
    # A minority or a majority, even all, at once.
    together = sorted(rng.sample(broker_names(scope.brokers), rng.randint(2, scope.brokers)))
    return [action._replace(on=(name,)) for name in together]
