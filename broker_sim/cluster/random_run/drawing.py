"""Draws what goes wrong in a run; it knows the cluster, and nothing of who uses it.

Chance alone seldom has two faults meet at the moment that matters. So a run has plots, each of which
is a few faults that belong together, aimed at whoever leads or coordinates by then, and single faults
beside them. And each run leaves most kinds of both out: what it has comes often then, and nothing else
prevents what it leads to ("swarm testing").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.cluster.faults.action import (
    CONTROLLER,
    FOLLOWER,
    GROUPS,
    LEADER,
    THIRD,
    TRANSACTIONS,
    Action,
    broker_names,
)
from broker_sim.cluster.faults.drawing import draw_action
from broker_sim.cluster.faults.kinds import KINDS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

__all__ = ["FAULT_DURATIONS_MS", "Setting", "draw_faults"]

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
    """Which there are: `GROUPS`, `TRANSACTIONS`."""

    @property
    def names(self) -> list[str]:
        """The names of the brokers."""
        return broker_names(self.brokers)


def draw_faults(rng: random.Random, setting: Setting) -> list[Action]:
    """Return the actions of a run, in the order of their time; all are over when it ends."""
    plots = [*_PLOTS, *([_coordinator] * 3 if setting.coordinators else [])]
    plots = rng.sample(plots, rng.choice((1, 1, 2, 3)))
    kinds = rng.sample(_STOPPING, rng.randint(1, 4))
    actions: list[Action] = []
    for _ in range(rng.choice((1, 2, 2, 3))):
        begin_ms = rng.randrange(200, max(201, setting.duration_ms * 2 // 3), 10)
        actions += rng.choice(plots)(rng, setting, begin_ms)
    while len(actions) < MOST_ACTIONS and rng.random() < 0.5:
        actions += _single(rng, setting, rng.choice(kinds))
    if rng.random() < HINDERED_SHARE:
        actions += _hindrances(rng, setting)
    return sorted(_within(setting, actions))


def _within(setting: Setting, actions: list[Action]) -> Iterator[Action]:
    for action in actions[:MOST_ACTIONS]:
        if action.at_ms < setting.duration_ms:
            left_ms = setting.duration_ms - action.at_ms
            yield action._replace(for_ms=min(action.for_ms, left_ms))


# -- single faults -----------------------------------------------------------------------------------

_STOPPING: Final = (
    "pause", "kill", "stop", "isolate", "cut_link", "slow_link", "deaf", "mute", "shift_clock", "transfer"
)  # fmt: skip
_HINDERING: Final = tuple(
    name
    for name, kind in KINDS.items()
    if kind.on != "worker" and name not in {*_STOPPING, "lose_power"}
)
"""They come beside the others, not in their place."""
HINDERED_SHARE: Final = 0.4
MOST_HINDRANCES: Final = 3
_OF_COORDINATORS: Final = {
    "move_groups": GROUPS, "move_transactions": TRANSACTIONS, "rebalance": GROUPS
}  # fmt: skip
"""Kinds that need the clients of a coordinator."""
TOGETHER_SHARE: Final = 0.35


def _hindrances(rng: random.Random, setting: Setting) -> list[Action]:
    there = {None, *setting.coordinators}
    possible = [kind for kind in _HINDERING if _OF_COORDINATORS.get(kind) in there]
    kinds = rng.choices(possible, k=rng.randint(1, MOST_HINDRANCES))
    return [action for kind in kinds for action in _single(rng, setting, kind)]


def _single(rng: random.Random, setting: Setting, kind: str) -> list[Action]:
    """Return one action, or the same one on several brokers at the same moment."""
    action = draw_action(
        rng,
        kind,
        brokers=setting.brokers,
        duration_ms=setting.duration_ms,
        durations_ms=FAULT_DURATIONS_MS,
    )
    if KINDS[kind].on != "broker" or not action.for_ms or rng.random() >= TOGETHER_SHARE:
        return [action]
    # A minority or a majority, even all, at once.
    together = sorted(rng.sample(setting.names, rng.randint(2, setting.brokers)))
    return [action._replace(on=(name,)) for name in together]


def _transfer(rng: random.Random, setting: Setting, at_ms: int) -> Action:
    partition = rng.randrange(setting.partitions)
    return Action(at_ms, "transfer", (rng.choice(setting.names),), value=str(partition))


# -- plots ---------------------------------------------------------------------------------------------


def _deaf_followers(rng: random.Random, _: Setting, at_ms: int) -> list[Action]:
    """Let the ISR shrink, perhaps while the controller hears late of it; then the leader falls."""
    for_ms = rng.randrange(1_200, 2_800, 10)
    pairs = _PAIRS if rng.random() < 0.5 else _PAIRS[:1]
    actions = [
        Action(at_ms + rng.randrange(0, 300, 10), "cut_link", pair, for_ms) for pair in pairs
    ]
    if rng.random() < 0.3:
        actions.append(Action(at_ms + 10, "slow_link", (LEADER, CONTROLLER), for_ms, "400"))
    if rng.random() < 0.5:
        fall_ms = at_ms + rng.randrange(600, 2_000, 10)
        actions.append(Action(fall_ms, _fall(rng), (LEADER,), rng.choice(FAULT_DURATIONS_MS)))
    return actions


def _alone(rng: random.Random, _: Setting, at_ms: int) -> list[Action]:
    """Leave the leader alone."""
    kind = rng.choice(("kill", "kill", "pause", "isolate"))
    for_ms = rng.randrange(1_500, 3_200, 10)
    return [
        Action(at_ms, kind, (FOLLOWER,), for_ms),
        Action(at_ms + rng.randrange(0, 600, 10), kind, (THIRD,), for_ms),
    ]


def _failovers(rng: random.Random, _: Setting, at_ms: int) -> list[Action]:
    """Let one leader after the other fall."""
    kind = _fall(rng)
    step_ms = rng.randrange(150, 900, 10)
    for_ms = rng.choice((50, 300, 1_000, 1_600))
    return [
        Action(at_ms + number * step_ms, kind, (LEADER,), for_ms)
        for number in range(rng.randint(2, 4))
    ]


def _deposed(rng: random.Random, _: Setting, at_ms: int) -> list[Action]:
    """Cut the leader off from its cluster; it goes on to hear its clients."""
    return [Action(at_ms, "isolate", (LEADER,), rng.randrange(1_200, 2_600, 10))]


def _unheard(rng: random.Random, setting: Setting, at_ms: int) -> list[Action]:
    """Let clients not hear that they were served: they ask again, and find another state."""
    for_ms = rng.randrange(400, 1_600, 10)
    brokers = setting.names
    actions = [Action(at_ms, "mute", (broker,), for_ms) for broker in brokers]
    then_ms = at_ms + rng.randrange(100, for_ms, 10)
    if rng.random() < 0.5:
        return actions + [Action(then_ms, "kill", (broker,), 100) for broker in brokers]
    return [*actions, Action(then_ms, _fall(rng), (LEADER,), 1_000)]


def _transfers(rng: random.Random, setting: Setting, at_ms: int) -> list[Action]:
    """Change leaders quickly, although nothing has failed."""
    step_ms = rng.randrange(20, 200, 10)
    slow = _slow_replicas(rng, setting, at_ms) if rng.random() < 0.5 else []
    return slow + [
        _transfer(rng, setting, at_ms + number * step_ms) for number in range(rng.randint(5, 12))
    ]


def _restarts(rng: random.Random, setting: Setting, at_ms: int) -> list[Action]:
    """Restart all brokers at about the same time."""
    for_ms = rng.choice((50, 100, 300, 2_000))
    return [
        Action(at_ms + rng.randrange(0, 200, 10), "kill", (broker,), for_ms)
        for broker in setting.names
    ]


def _slow_replicas(rng: random.Random, _: Setting, at_ms: int) -> list[Action]:
    """Replicate what is appended a little later; then, perhaps, the leader falls."""
    for_ms = rng.randrange(800, 3_000, 10)
    delay_ms = rng.choice(_SMALL_DELAYS_MS)
    actions = [Action(at_ms, "slow_link", pair, for_ms, delay_ms) for pair in _PAIRS]
    if rng.random() < 0.7:
        fall_ms = at_ms + rng.randrange(200, for_ms, 10)
        actions.append(Action(fall_ms, _fall(rng), (LEADER,), rng.choice(FAULT_DURATIONS_MS)))
    return actions


def _late_controller(rng: random.Random, _: Setting, at_ms: int) -> list[Action]:
    """Let leader and controller hear late of each other, while a follower comes or goes."""
    link = rng.choice(((LEADER, CONTROLLER), (CONTROLLER, LEADER)))
    kind, value = rng.choice((("slow_link", "40"), ("slow_link", "400"), ("cut_link", "")))
    for_ms = rng.randrange(600, 2_000, 10)
    follower_ms = at_ms + rng.randrange(-150, 300, 10)
    return [
        Action(at_ms, kind, link, for_ms, value),
        Action(follower_ms, rng.choice(("kill", "pause")), (FOLLOWER,), rng.choice((300, 1_000))),
    ]


def _coordinator(rng: random.Random, setting: Setting, at_ms: int) -> list[Action]:
    """Give groups or transactions one coordinator after the other, by request or because it falls."""
    role = rng.choice(setting.coordinators)
    brokers = setting.names
    actions: list[Action] = []
    if rng.random() < 0.5:
        delay_ms, for_ms = rng.choice(_SMALL_DELAYS_MS), rng.randrange(1_000, 3_000, 10)
        actions += [Action(at_ms, "slow_link", (role, each), for_ms, delay_ms) for each in brokers]
    if rng.random() < 0.5:
        kind = "move_groups" if role == GROUPS else "move_transactions"
        step_ms = rng.randrange(60, 400, 10)
        return actions + [
            Action(at_ms + number * step_ms, kind, (rng.choice(brokers),))
            for number in range(rng.randint(3, 10))
        ]
    kind = _fall(rng)
    step_ms = rng.randrange(200, 1_200, 10)
    for_ms = rng.choice((50, 300, 1_000, 1_800))
    return actions + [
        Action(at_ms + number * step_ms, kind, (role,), for_ms)
        for number in range(rng.randint(1, 4))
    ]


def _fall(rng: random.Random) -> str:
    return rng.choice(("kill", "kill", "pause", "isolate", "stop"))


_PLOTS: Final[tuple[Callable[[random.Random, Setting, int], list[Action]], ...]] = (
    _deaf_followers,
    _deaf_followers,
    _alone,
    _alone,
    _failovers,
    _deposed,
    _unheard,
    _transfers,
    _restarts,
    _slow_replicas,
    _late_controller,
)
