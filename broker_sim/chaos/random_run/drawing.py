"""Draws what goes wrong in a run; it knows the cluster, and nothing of who uses it.

Chance alone seldom has two faults meet at the moment that matters. So a run has plots, each of which
is a few faults that belong together, aimed at whoever leads or coordinates by then, and single faults
beside them. And each run leaves most kinds of both out: what it has comes often then, and nothing else
prevents what it leads to ("swarm testing").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.chaos.faults.action import (
    CONTROLLER,
    FOLLOWER,
    GROUPS,
    LEADER,
    THIRD,
    TRANSACTIONS,
    Action,
    broker_names,
)
from broker_sim.chaos.faults.kinds import GRID_MS, KINDS, draw_action

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

FAULT_DURATIONS_MS: Final = (50, 300, 1_000, 2_000, 3_000)
MOST_ACTIONS: Final = 30
_SMALL_DELAYS_MS: Final = ("2", "5", "20", "40", "100")
_PAIRS: Final = ((LEADER, FOLLOWER), (LEADER, THIRD))


class Setting(NamedTuple):
    """The cluster that the faults are drawn for, and how long they may last."""

    brokers: int
    partitions: int
    duration_ms: int
    coordinators: tuple[str, ...] = ()
    """The coordinators in use: `GROUPS`, `TRANSACTIONS`."""


def draw_faults(rng: random.Random, setting: Setting) -> list[Action]:
    """Return the actions of a run, in the order of their time; all are over when it ends."""
    return _Drawing(rng, setting).faults()


# -- single faults -----------------------------------------------------------------------------------

_STOPPING: Final = (
    "pause", "kill", "stop", "isolate", "cut_link", "slow_link", "deaf", "mute", "shift_clock", "transfer"
)  # fmt: skip
_NOT_DRAWN: Final = ("lose_power", "hold", "damage")
"""Kinds that a schedule names, or that come with simulated disks."""
_HINDERING: Final = tuple(
    name for name, kind in KINDS.items() if not kind.is_of_workers and name not in {*_STOPPING, *_NOT_DRAWN}
)
"""Kinds that are drawn beside the others, not in their place."""
HINDERED_SHARE: Final = 0.4
MOST_HINDRANCES: Final = 3
_OF_COORDINATORS: Final = {
    "move_groups": GROUPS, "move_transactions": TRANSACTIONS, "rebalance": GROUPS
}  # fmt: skip
"""Kinds that need the clients of a coordinator."""
TOGETHER_SHARE: Final = 0.35


class _Drawing:
    """The faults of one run. What it calls `at_ms` is when the first of them is due."""

    def __init__(self, rng: random.Random, setting: Setting) -> None:
        self._rng = rng
        self._setting = setting
        self._names = broker_names(setting.brokers)

    def faults(self) -> list[Action]:
        """Return the actions, in the order of their time."""
        rng, duration_ms = self._rng, self._setting.duration_ms
        plots = [*_PLOTS, *([_Drawing.coordinator] * 3 if self._setting.coordinators else [])]
        plots = rng.sample(plots, rng.choice((1, 1, 2, 3)))
        kinds = rng.sample(_STOPPING, rng.randint(1, 4))
        actions: list[Action] = []
        for _ in range(rng.choice((1, 2, 2, 3))):
            begin_ms = self._ms(200, max(201, duration_ms * 2 // 3))
            actions += rng.choice(plots)(self, begin_ms)
        while len(actions) < MOST_ACTIONS and rng.random() < 0.5:
            actions += self._single(rng.choice(kinds))
        if rng.random() < HINDERED_SHARE:
            actions += self._hindrances()
        return sorted(
            action._replace(for_ms=min(action.for_ms, duration_ms - action.at_ms))
            for action in actions[:MOST_ACTIONS]
            if action.at_ms < duration_ms
        )

    def _ms(self, least: int, below: int) -> int:
        return self._rng.randrange(least, below, GRID_MS)

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

    def _fall(self) -> str:
        return self._rng.choice(("kill", "kill", "pause", "isolate", "stop"))

    def _leader_falls(self, at_ms: int) -> Action:
        return Action(at_ms, self._fall(), (LEADER,), self._rng.choice(FAULT_DURATIONS_MS))

    # -- plots --------------------------------------------------------------------------------------

    def deaf_followers(self, at_ms: int) -> list[Action]:
        """Let the ISR shrink, perhaps while the controller hears late of it; then the leader falls."""
        for_ms = self._ms(1_200, 2_800)
        pairs = _PAIRS if self._rng.random() < 0.5 else _PAIRS[:1]
        actions = [Action(at_ms + self._ms(0, 300), "cut_link", pair, for_ms) for pair in pairs]
        if self._rng.random() < 0.3:
            actions.append(Action(at_ms + 10, "slow_link", (LEADER, CONTROLLER), for_ms, "400"))
        if self._rng.random() < 0.5:
            actions.append(self._leader_falls(at_ms + self._ms(600, 2_000)))
        return actions

    def alone(self, at_ms: int) -> list[Action]:
        """Leave the leader alone."""
        kind = self._rng.choice(("kill", "kill", "pause", "isolate"))
        for_ms = self._ms(1_500, 3_200)
        return [Action(at_ms, kind, (FOLLOWER,), for_ms), Action(at_ms + self._ms(0, 600), kind, (THIRD,), for_ms)]

    def failovers(self, at_ms: int) -> list[Action]:
        """Let one leader after the other fall."""
        kind, step_ms = self._fall(), self._ms(150, 900)
        for_ms = self._rng.choice((50, 300, 1_000, 1_600))
        count = self._rng.randint(2, 4)
        return [Action(at_ms + n * step_ms, kind, (LEADER,), for_ms) for n in range(count)]

    def deposed(self, at_ms: int) -> list[Action]:
        """Cut the leader off from its cluster; it goes on to hear its clients."""
        return [Action(at_ms, "isolate", (LEADER,), self._ms(1_200, 2_600))]

    def unheard(self, at_ms: int) -> list[Action]:
        """Let clients not hear that they were served: they ask again, and find another state."""
        for_ms = self._ms(400, 1_600)
        actions = [Action(at_ms, "mute", (broker,), for_ms) for broker in self._names]
        then_ms = at_ms + self._ms(100, for_ms)
        if self._rng.random() < 0.5:
            return actions + [Action(then_ms, "kill", (broker,), 100) for broker in self._names]
        return [*actions, Action(then_ms, self._fall(), (LEADER,), 1_000)]

    def transfers(self, at_ms: int) -> list[Action]:
        """Change leaders quickly, although nothing has failed."""
        step_ms = self._ms(20, 200)
        slow = self.slow_replicas(at_ms) if self._rng.random() < 0.5 else []
        count = self._rng.randint(5, 12)
        return slow + [self._transfer(at_ms + number * step_ms) for number in range(count)]

    def _transfer(self, at_ms: int) -> Action:
        partition = self._rng.randrange(self._setting.partitions)
        return Action(at_ms, "transfer", (self._rng.choice(self._names),), value=str(partition))

    def restarts(self, at_ms: int) -> list[Action]:
        """Restart all brokers at about the same time."""
        for_ms = self._rng.choice((50, 100, 300, 2_000))
        return [Action(at_ms + self._ms(0, 200), "kill", (each,), for_ms) for each in self._names]

    def slow_replicas(self, at_ms: int) -> list[Action]:
        """Replicate what is appended a little later; then, perhaps, the leader falls."""
        for_ms = self._ms(800, 3_000)
        delay_ms = self._rng.choice(_SMALL_DELAYS_MS)
        actions = [Action(at_ms, "slow_link", pair, for_ms, delay_ms) for pair in _PAIRS]
        if self._rng.random() < 0.7:
            actions.append(self._leader_falls(at_ms + self._ms(200, for_ms)))
        return actions

    def late_controller(self, at_ms: int) -> list[Action]:
        """Let leader and controller hear late of each other, while a follower comes or goes."""
        choice = self._rng.choice
        link = choice(((LEADER, CONTROLLER), (CONTROLLER, LEADER)))
        kind, value = choice((("slow_link", "40"), ("slow_link", "400"), ("cut_link", "")))
        for_ms = self._ms(600, 2_000)
        follower_ms = at_ms + self._ms(-150, 300)
        return [
            Action(at_ms, kind, link, for_ms, value),
            Action(follower_ms, choice(("kill", "pause")), (FOLLOWER,), choice((300, 1_000))),
        ]

    def coordinator(self, at_ms: int) -> list[Action]:
        """Give groups or transactions one coordinator after the other, by request or because it falls."""
        rng = self._rng
        role = rng.choice(self._setting.coordinators)
        actions: list[Action] = []
        if rng.random() < 0.5:
            delay_ms, for_ms = rng.choice(_SMALL_DELAYS_MS), self._ms(1_000, 3_000)
            links = [(role, each) for each in self._names]
            actions += [Action(at_ms, "slow_link", link, for_ms, delay_ms) for link in links]
        if rng.random() < 0.5:
            kind = "move_groups" if role == GROUPS else "move_transactions"
            step_ms = self._ms(60, 400)
            return actions + [
                Action(at_ms + number * step_ms, kind, (rng.choice(self._names),))
                for number in range(rng.randint(3, 10))
            ]
        kind, step_ms = self._fall(), self._ms(200, 1_200)
        for_ms = rng.choice((50, 300, 1_000, 1_800))
        count = rng.randint(1, 4)
        return actions + [Action(at_ms + n * step_ms, kind, (role,), for_ms) for n in range(count)]


_PLOTS: Final[tuple[Callable[[_Drawing, int], list[Action]], ...]] = (
    _Drawing.deaf_followers,
    _Drawing.deaf_followers,
    _Drawing.alone,
    _Drawing.alone,
    _Drawing.failovers,
    _Drawing.deposed,
    _Drawing.unheard,
    _Drawing.transfers,
    _Drawing.restarts,
    _Drawing.slow_replicas,
    _Drawing.late_controller,
)
