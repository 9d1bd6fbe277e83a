"""Draws the schedule that follows from a seed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from broker_sim.chaos.kinds import BROKERS, KINDS, weights_of
from broker_sim.chaos.schedule import DEFAULT_DURATION_MS, Action, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.runtime.virtual.loop import Order

__all__ = ["calm_schedule", "draw_schedule"]

MOST_FAULTS: Final = 10
DURATIONS_MS: Final = (100, 1_000, 3_000, 8_000, 12_000)
"""Short hiccups, and what lasts longer than sessions and requests' timeouts."""
LATENCIES_MS: Final = (0, 5, 20)
GRID_MS: Final = 10


def draw_schedule(
    seed: int,
    *,
    faults: Iterable[str] | Mapping[str, float] | None = None,
    brokers: int = 3,
    workers: int = 2,
    duration_ms: int = DEFAULT_DURATION_MS,
    most_faults: int = MOST_FAULTS,
    latency_ms: int | None = None,
    order: Order = "fifo",
) -> Schedule:
    """Return the schedule of a seed: 1 to `most_faults` actions, drawn by weight (`weights_of`).

    The latency is drawn too, unless it is given.
    """
    rng = random.Random(f"{seed}/chaos")
    weights = weights_of(faults)
    kinds = rng.choices(list(weights), list(weights.values()), k=rng.randint(1, most_faults))
    actions = [_draw(rng, kind, brokers, workers, duration_ms) for kind in kinds]
    return Schedule(
        seed,
        brokers=brokers,
        workers=workers,
        latency_ms=rng.choice(LATENCIES_MS) if latency_ms is None else latency_ms,
        duration_ms=duration_ms,
        actions=tuple(sorted(actions)),
        order=order,
    )


def calm_schedule(seed: int, brokers: int, workers: int, latency_ms: int | None) -> Schedule:
    """Return a schedule without faults, for a test whose workers meet."""
    return Schedule(
        seed, brokers=brokers, workers=workers, latency_ms=latency_ms or 0, duration_ms=0
    )


def _draw(rng: random.Random, name: str, brokers: int, workers: int, duration_ms: int) -> Action:
    kind = KINDS[name]
    at_ms = rng.randrange(0, duration_ms, GRID_MS)
    for_ms = min(rng.choice(DURATIONS_MS), duration_ms - at_ms) if kind.lasts else 0
    count = workers if kind.on == "worker" else brokers
    on = [BROKERS if kind.on == BROKERS else f"{kind.on}-{rng.randint(1, count)}"]
    if kind.whole_side:
        on.append(rng.choice((BROKERS, BROKERS, f"broker-{rng.randint(1, brokers)}")))
    value = rng.choice(kind.values) if kind.values else ""
    return Action(at_ms, name, tuple(on), for_ms, value)
