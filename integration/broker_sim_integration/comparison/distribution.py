"""Many responses of one kind, judged by their lateness on both sides.

The simulator's median and 95th percentile may exceed Kafka's by a few milliseconds. In addition to that
the limit includes the difference between the control timers of both runs and, for responses with a spread,
its randomness: three standard errors of a percentile of that many samples. A response that arrived before
its cause was known to have happened counts as at once: Docker returns from resuming a broker after the
broker has already responded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker_sim_integration.observations import TimingClass

LEAST_SAMPLES: Final = 30
"""Minimum number of samples; with fewer, one or two outliers would decide the 95th percentile."""
P50_MS: Final = 4.0
"""Limit of the median in ms: waits of 20 ms are late by 1.3 to 1.9 ms in Kafka, by 1.7 to 2 ms in the simulator,
on an idle machine and on one with ten times the work that it can do.
"""
P95_MS: Final = 8.0
"""Limit of the 95th percentile in ms: Kafka's is 2.2 to 3.9 ms, the simulator's 3 to 7 beside other programs."""
STANDARD_ERRORS: Final = 3.0
RULE: Final = (
    f"the simulator's p50 may exceed Kafka's by {P50_MS:g} ms and its p95 by {P95_MS:g} ms, "
    "beside what the machine and a spread of Kafka's own add"
)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Lateness in ms of many responses of one side."""

    count: int
    p50: float
    p95: float
    p99: float
    maximum: float

    @classmethod
    def of(cls, samples: Iterable[float]) -> Distribution:
        """Return the percentiles (nearest rank) of at least one sample."""
        ordered = sorted(samples)

        def percentile(share: float) -> float:
            return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3)

        maximum = round(ordered[-1], 3)
        return cls(len(ordered), percentile(0.5), percentile(0.95), percentile(0.99), maximum)


@dataclass(frozen=True, slots=True)
class Machines:
    """Lateness of the control timers of the two runs; None, unknown, counts as idle."""

    kafka: Distribution | None = None
    sim: Distribution | None = None

    def added_ms(self, percentile: str) -> float:
        """Return by how many ms the simulator's run was later in this percentile; 0 if it was not."""
        theirs, ours = (
            0.0 if control is None else float(getattr(control, percentile)) for control in (self.kafka, self.sim)
        )
        return max(0.0, ours - theirs)


@dataclass(frozen=True, slots=True)
class LatenessComparison:
    """One class of timing, or one step that was repeated often, on both sides."""

    name: str
    timing: TimingClass
    kafka: Distribution
    sim: Distribution
    judged: bool
    """Whether there are enough samples."""
    reason: str = ""
    """The reason why it does not agree; empty if it does."""

    @property
    def agrees(self) -> bool:
        """Whether the simulator's lateness is within the limits, or not judged."""
        return not self.reason

    @property
    def verdict(self) -> str:
        """`agrees`, `differs`, or an empty text if it is not judged."""
        return "" if not self.judged else "agrees" if self.agrees else "differs"


def compare_samples(
    name: str,
    timing: TimingClass,
    kafka: Sequence[float],
    sim: Sequence[float],
    *,
    spread_ms: float = 0.0,
    machines: Machines,
) -> LatenessComparison:
    """Compare the lateness of one kind of response, with at least one sample on each side.

    With a spread the simulator may not be earlier than Kafka either, which would be another mechanism.
    """
    theirs, ours = Distribution.of(kafka), Distribution.of(sim)
    judged = min(len(kafka), len(sim)) >= LEAST_SAMPLES
    reasons = _reasons(theirs, ours, spread_ms, machines) if judged else ()
    return LatenessComparison(name, timing, theirs, ours, judged, "; ".join(reasons))


def _reasons(kafka: Distribution, sim: Distribution, spread_ms: float, machines: Machines) -> Iterator[str]:
    for percentile, share, allowed_ms in (("p50", 0.5, P50_MS), ("p95", 0.95, P95_MS)):
        errors = math.sqrt(share * (1 - share) * (1 / kafka.count + 1 / sim.count))
        chance_ms = STANDARD_ERRORS * spread_ms * errors
        later_ms = max(0.0, getattr(sim, percentile)) - max(0.0, getattr(kafka, percentile))
        most_ms = allowed_ms + chance_ms + machines.added_ms(percentile)
        if later_ms > most_ms:
            yield f"{percentile} {later_ms:.1f} ms later than Kafka's, {most_ms:.1f} are allowed"
        if spread_ms and -later_ms > most_ms:
            yield f"{percentile} {-later_ms:.1f} ms sooner than Kafka's, {most_ms:.1f} are allowed"
