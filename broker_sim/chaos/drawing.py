"""Draws the schedule that follows from a seed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.drawing import draw_action
from broker_sim.chaos.faults.kinds import weights_of
from broker_sim.chaos.schedule import DEFAULT_DURATION_MS, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.runtime.virtual.loop import Order

MOST_FAULTS: Final = 10
DURATIONS_MS: Final = (100, 1_000, 3_000, 8_000, 12_000)
"""Short hiccups, and what lasts longer than sessions and requests' timeouts."""
LATENCIES_MS: Final = (0, 5, 20)


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
    actions = [
        draw_action(rng, kind, brokers=brokers, workers=workers, duration_ms=duration_ms, durations_ms=DURATIONS_MS)
        for kind in kinds
    ]
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
    return Schedule(seed, brokers=brokers, workers=workers, latency_ms=latency_ms or 0, duration_ms=0)
