"""Plots: combinations of faults aimed at the leader or coordinator of the moment.

Chance alone rarely makes two faults coincide at the moment that matters. Random runs draw plots, and so do searches
for applications: those of `PLOT_WEIGHTS`, or those that they name among the kinds of faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.chaos.faults.action import (
    CONTROLLER,
    FOLLOWER,
    GROUPS,
    LEADER,
    THIRD,
    TRANSACTIONS,
    WORKERS,
    Action,
    broker_names,
)
from broker_sim.chaos.faults.kinds import GRID_MS

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

FAULT_DURATIONS_MS: Final = (50, 300, 1_000, 2_000, 3_000)
LONG_FREEZES_MS: Final = (8_000, 12_000, 20_000)
"""Durations that exceed the session timeouts of clients under chaos, also aiokafka's default."""
LONG_FALLS_MS: Final = (4_000, 8_000)
"""Durations that exceed the sessions of brokers under chaos, so that another replica leads."""
_SMALL_DELAYS_MS: Final = ("2", "5", "20", "40", "100")
_PAIRS: Final = ((LEADER, FOLLOWER), (LEADER, THIRD))


class FaultScope(NamedTuple):
    """The cluster for which faults are drawn, and the duration of the run."""

    brokers: int
    partitions: int
    duration_ms: int
    coordinators: tuple[str, ...] = ()
    """The coordinators in use: `GROUPS`, `TRANSACTIONS`."""
    workers: int = 0
    """Number of workers; random runs have clients of their own instead."""


class Plots:
    """The plots of one run. `at_ms` is the time of a plot's first fault."""

    def __init__(self, rng: random.Random, scope: FaultScope) -> None:
        self._rng = rng
        self._scope = scope
        self._names = broker_names(scope.brokers)

    def ms(self, least: int, below: int) -> int:
        """Return a random time in [least, below) on the grid of faults."""
        return self._rng.randrange(least, below, GRID_MS)

    def _fall(self) -> str:
        return self._rng.choice(("kill", "kill", "pause", "isolate", "stop"))

    def _leader_falls(self, at_ms: int) -> Action:
        return Action(at_ms, self._fall(), (LEADER,), self._rng.choice(FAULT_DURATIONS_MS))

    def deaf_followers(self, at_ms: int) -> list[Action]:
        """Make the ISR shrink, perhaps while the controller learns of it late; then the leader fails."""
        for_ms = self.ms(1_200, 2_800)
        pairs = _PAIRS if self._rng.random() < 0.5 else _PAIRS[:1]
        actions = [Action(at_ms + self.ms(0, 300), "cut_link", pair, for_ms) for pair in pairs]
        if self._rng.random() < 0.3:
            actions.append(Action(at_ms + 10, "slow_link", (LEADER, CONTROLLER), for_ms, "400"))
        if self._rng.random() < 0.5:
            actions.append(self._leader_falls(at_ms + self.ms(600, 2_000)))
        return actions

    def alone(self, at_ms: int) -> list[Action]:
        """Stop both followers, so that the leader is alone."""
        kind = self._rng.choice(("kill", "kill", "pause", "isolate"))
        for_ms = self.ms(1_500, 3_200)
        return [Action(at_ms, kind, (FOLLOWER,), for_ms), Action(at_ms + self.ms(0, 600), kind, (THIRD,), for_ms)]

    def failovers(self, at_ms: int) -> list[Action]:
        """Make one leader after the other fail."""
        kind, step_ms = self._fall(), self.ms(150, 900)
        for_ms = self._rng.choice((50, 300, 1_000, 1_600))
        count = self._rng.randint(2, 4)
        return [Action(at_ms + n * step_ms, kind, (LEADER,), for_ms) for n in range(count)]

    def deposed(self, at_ms: int) -> list[Action]:
        """Cut the leader off from the cluster but not from its clients."""
        return [Action(at_ms, "isolate", (LEADER,), self.ms(1_200, 2_600))]

    def unheard(self, at_ms: int) -> list[Action]:
        """Block responses to clients, which retry and find a changed state."""
        for_ms = self.ms(400, 1_600)
        actions = [Action(at_ms, "mute", (broker,), for_ms) for broker in self._names]
        then_ms = at_ms + self.ms(100, for_ms)
        if self._rng.random() < 0.5:
            return actions + [Action(then_ms, "kill", (broker,), 100) for broker in self._names]
        return [*actions, Action(then_ms, self._fall(), (LEADER,), 1_000)]

    def transfers(self, at_ms: int) -> list[Action]:
        """Change leaders quickly without a failure."""
        step_ms = self.ms(20, 200)
        slow = self.slow_replicas(at_ms) if self._rng.random() < 0.5 else []
        count = self._rng.randint(5, 12)
        return slow + [self._transfer(at_ms + number * step_ms) for number in range(count)]

    def _transfer(self, at_ms: int) -> Action:
        partition = self._rng.randrange(self._scope.partitions)
        return Action(at_ms, "transfer", (self._rng.choice(self._names),), value=str(partition))

    def restarts(self, at_ms: int) -> list[Action]:
        """Restart all brokers at about the same time."""
        for_ms = self._rng.choice((50, 100, 300, 2_000))
        return [Action(at_ms + self.ms(0, 200), "kill", (each,), for_ms) for each in self._names]

    def slow_replicas(self, at_ms: int) -> list[Action]:
        """Delay replication a little; then the leader may fail."""
        for_ms = self.ms(800, 3_000)
        delay_ms = self._rng.choice(_SMALL_DELAYS_MS)
        actions = [Action(at_ms, "slow_link", pair, for_ms, delay_ms) for pair in _PAIRS]
        if self._rng.random() < 0.7:
            actions.append(self._leader_falls(at_ms + self.ms(200, for_ms)))
        return actions

    def late_controller(self, at_ms: int) -> list[Action]:
        """Delay messages between leader and controller while a follower joins or leaves."""
        choice = self._rng.choice
        link = choice(((LEADER, CONTROLLER), (CONTROLLER, LEADER)))
        kind, value = choice((("slow_link", "40"), ("slow_link", "400"), ("cut_link", "")))
        for_ms = self.ms(600, 2_000)
        follower_ms = at_ms + self.ms(-150, 300)
        return [
            Action(at_ms, kind, link, for_ms, value),
            Action(follower_ms, choice(("kill", "pause")), (FOLLOWER,), choice((300, 1_000))),
        ]

    def coordinator(self, at_ms: int) -> list[Action]:
        """Move the coordinator of groups or transactions repeatedly, by request or by failures."""
        rng = self._rng
        role = rng.choice(self._scope.coordinators)
        actions: list[Action] = []
        if rng.random() < 0.5:
            delay_ms, for_ms = rng.choice(_SMALL_DELAYS_MS), self.ms(1_000, 3_000)
            links = [(role, each) for each in self._names]
            actions += [Action(at_ms, "slow_link", link, for_ms, delay_ms) for link in links]
        if rng.random() < 0.5:
            kind = "move_groups" if role == GROUPS else "move_transactions"
            step_ms = self.ms(60, 400)
            return actions + [
                Action(at_ms + number * step_ms, kind, (rng.choice(self._names),))
                for number in range(rng.randint(3, 10))
            ]
        kind, step_ms = self._fall(), self.ms(200, 1_200)
        for_ms = rng.choice((50, 300, 1_000, 1_800))
        count = rng.randint(1, 4)
        return actions + [Action(at_ms + n * step_ms, kind, (role,), for_ms) for n in range(count)]

    # -- plots of workers ---------------------------------------------------------------------------

    def crash_in_a_move(self, at_ms: int) -> list[Action]:
        """Crash a worker while the coordinator of its group moves."""
        broker = self._rng.choice(self._names)
        crash_ms = max(0, at_ms + self.ms(-500, 1_500))
        return [
            Action(at_ms, "move_groups", (broker,)),
            Action(crash_ms, "crash", (self._worker(),), self._rng.choice(FAULT_DURATIONS_MS)),
        ]

    def long_freeze(self, at_ms: int) -> list[Action]:
        """Freeze a worker for longer than its session, so that another worker has taken over when it is back."""
        return [Action(at_ms, "freeze", (self._worker(),), self._rng.choice(LONG_FREEZES_MS))]

    def overlapping_deploys(self, at_ms: int) -> list[Action]:
        """Start a deploy while another one is under way."""
        first, second = self._rng.choice((("rolling", "rolling"), ("rolling", "all"), ("all", "rolling")))
        return [
            Action(at_ms, "deploy", (WORKERS,), value=first),
            Action(at_ms + self.ms(200, 6_000), "deploy", (WORKERS,), value=second),
        ]

    def roll_in_a_transaction(self, at_ms: int) -> list[Action]:
        """Restart the coordinator of transactions, or a leader, while commits wait for it."""
        role = self._rng.choice((TRANSACTIONS, LEADER))
        held_ms = self.ms(1_000, 4_000)
        return [
            Action(at_ms, "hold", ("brokers",), held_ms, "EndTxn"),
            Action(at_ms + self.ms(200, held_ms), "roll", (role,)),
        ]

    def leader_ahead(self, at_ms: int) -> list[Action]:
        """Cut the followers off, and make the leader fall while they are in the ISR without its records."""
        for_ms = self.ms(1_000, 4_000)
        return [
            *(Action(at_ms, "cut_link", pair, for_ms) for pair in _PAIRS),
            Action(at_ms + self.ms(500, for_ms), self._fall(), (LEADER,), self._rng.choice(LONG_FALLS_MS)),
        ]

    def _worker(self) -> str:
        return f"worker-{self._rng.randint(1, self._scope.workers)}"


Plot = Callable[[Plots, int], list[Action]]

PLOTS: Final[Mapping[str, Plot]] = MappingProxyType(
    {
        plot.__name__: plot
        for plot in (
            Plots.crash_in_a_move,
            Plots.long_freeze,
            Plots.overlapping_deploys,
            Plots.roll_in_a_transaction,
            Plots.leader_ahead,
            Plots.deaf_followers,
            Plots.alone,
            Plots.failovers,
            Plots.deposed,
            Plots.unheard,
            Plots.transfers,
            Plots.restarts,
            Plots.slow_replicas,
            Plots.late_controller,
        )
    }
)
"""The plots that a search can name besides kinds of faults."""
PLOT_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {"crash_in_a_move": 0.5, "long_freeze": 0.5, "overlapping_deploys": 0.5, "leader_ahead": 1}
)
"""Weights with which plots are drawn for applications; others happen only if they are named."""


def draw_plot(rng: random.Random, name: str, scope: FaultScope) -> list[Action]:
    """Draw the actions of a plot; they end within the run."""
    duration_ms = scope.duration_ms
    actions = PLOTS[name](Plots(rng, scope), rng.randrange(0, duration_ms, GRID_MS))
    return within(actions, duration_ms)


def within(actions: Sequence[Action], duration_ms: int) -> list[Action]:
    """Return the actions that begin within the run, in order, shortened so that they end within it."""
    return sorted(
        action._replace(for_ms=min(action.for_ms, duration_ms - action.at_ms))
        for action in actions
        if 0 <= action.at_ms < duration_ms
    )
