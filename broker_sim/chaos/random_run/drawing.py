"""Draws the faults of a run, independent of its clients.

A run has plots (`faults.plots`) and single faults. Each run leaves out most kinds of both: the others then happen
often, and nothing else masks their consequences ("swarm testing").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.action import GROUPS, TRANSACTIONS, broker_names
from broker_sim.chaos.faults.kinds import KINDS, draw_action
from broker_sim.chaos.faults.plots import FAULT_DURATIONS_MS, Plot, Plots, Setting, within

if TYPE_CHECKING:
    import random

    from broker_sim.chaos.faults.action import Action

MOST_ACTIONS: Final = 30


def draw_faults(rng: random.Random, setting: Setting) -> list[Action]:
    """Return the actions of a run, in the order of their time; all end within it."""
    return _Drawing(rng, setting).faults()


# -- single faults -----------------------------------------------------------------------------------

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
MOST_HINDRANCES: Final = 3
_OF_COORDINATORS: Final = {
    "move_groups": GROUPS, "move_transactions": TRANSACTIONS, "rebalance": GROUPS
}  # fmt: skip
"""Kinds that need clients of a coordinator."""
TOGETHER_SHARE: Final = 0.35


class _Drawing:
    """The faults of one run."""

    def __init__(self, rng: random.Random, setting: Setting) -> None:
        self._rng = rng
        self._setting = setting
        self._names = broker_names(setting.brokers)
        self._plots = Plots(rng, setting)

    def faults(self) -> list[Action]:
        """Return the actions, in the order of their time."""
        rng, duration_ms = self._rng, self._setting.duration_ms
        plots = [*_PLOTS, *([Plots.coordinator] * 3 if self._setting.coordinators else [])]
        plots = rng.sample(plots, rng.choice((1, 1, 2, 3)))
        kinds = rng.sample(_STOPPING, rng.randint(1, 4))
        actions: list[Action] = []
        for _ in range(rng.choice((1, 2, 2, 3))):
            begin_ms = self._plots.ms(200, max(201, duration_ms * 2 // 3))
            actions += rng.choice(plots)(self._plots, begin_ms)
        while len(actions) < MOST_ACTIONS and rng.random() < 0.5:
            actions += self._single(rng.choice(kinds))
        if rng.random() < HINDERED_SHARE:
            actions += self._hindrances()
        return within(actions[:MOST_ACTIONS], duration_ms)

    # -- single faults ------------------------------------------------------------------------------

    def _hindrances(self) -> list[Action]:
        there = {None, *self._setting.coordinators}
        possible = [kind for kind in _HINDERING if _OF_COORDINATORS.get(kind) in there]
        kinds = self._rng.choices(possible, k=self._rng.randint(1, MOST_HINDRANCES))
        return [action for kind in kinds for action in self._single(kind)]

    def _single(self, kind: str) -> list[Action]:
        """Return one action, or the same one on several brokers at the same moment."""
        rng, brokers = self._rng, self._setting.brokers
        action = draw_action(
            rng, kind, brokers=brokers, duration_ms=self._setting.duration_ms, durations_ms=FAULT_DURATIONS_MS
        )
        if KINDS[kind].on != "broker" or not action.for_ms or rng.random() >= TOGETHER_SHARE:
            return [action]
        # A minority or a majority, even all, at once.
        together = sorted(rng.sample(self._names, rng.randint(2, brokers)))
        return [action._replace(on=(name,)) for name in together]


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
