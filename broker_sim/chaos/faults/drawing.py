"""Draws one action, for whoever makes a schedule of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.action import BROKERS, CONTROLLER, Action, broker_names
from broker_sim.chaos.faults.kinds import KINDS

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

GRID_MS: Final = 10


def draw_action(
    rng: random.Random, name: str, *, brokers: int, duration_ms: int, durations_ms: Sequence[int], workers: int = 0
) -> Action:
    """Return an action of that kind: at some time, over when the run is over, on anybody, with any value."""
    kind = KINDS[name]
    at_ms = rng.randrange(0, duration_ms, GRID_MS)
    for_ms = min(rng.choice(durations_ms), duration_ms - at_ms) if kind.lasts else 0
    names = broker_names(brokers)
    if kind.several:
        count = rng.choice((1, rng.randint(1, brokers), brokers))
        on = sorted(rng.sample(names, count))
    elif kind.on == "link":
        on = rng.sample((CONTROLLER, *names), 2)
    elif kind.on == BROKERS:
        on = [BROKERS]
    else:
        count = workers if kind.on == "worker" else brokers
        on = [f"{kind.on}-{rng.randint(1, count)}"]
    if kind.whole_side:
        on.append(rng.choice((BROKERS, BROKERS, f"broker-{rng.randint(1, brokers)}")))
    value = rng.choice(kind.values) if kind.values else ""
    return Action(at_ms, name, tuple(on), for_ms, value)
