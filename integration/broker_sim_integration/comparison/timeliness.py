"""Judgement of the time of one response, without the time for which the machine was stalled.

A response may be late by a small limit, by the spread of its timing, and by the time for which the comparing
process itself was stalled after it was due. The attempts of a step with many attempts are judged by their
distribution; each alone only has the limit `OUTLIER_MS`.

The limits come from all scenarios run beside Kafka 4.3.1 (JVM, two cores with ten times the work that
they can do; about 1000 responses at once, 300 at a timeout, 230 on an event). Lateness in ms:

| side | timing | p50 | p95 | p99 | maximum |
|---|---|---|---|---|---|
| simulator | at once | 0.3 | 6.6 | 17 | 49 |
| simulator | at a timeout | 1.8 | 13 | 16 | 30 |
| simulator | on an event without spread | 0.1 | 4.8 | 7.9 | 16 |
| Kafka | at once | 1.8 | 32 | 76 | 219 |
| Kafka | at a timeout | 2.5 | 18 | 20 | 21 |
| Kafka | on an event without spread | 0.5 | 14 | 44 | 52 |
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from broker_sim_integration.comparison.distribution import LEAST_SAMPLES
from broker_sim_integration.observations import TimingClass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim_integration.observations import Observation

ROUNDING_MS: Final = 1.0
"""Kafka's clock counts whole milliseconds, so its wait may begin up to 1 ms before the request arrived. The
simulator rounds up: of 10 000 responses none came less than 0.09 ms after its earliest time, and none of
its waits ended less than 0.5 ms after its timeout.
"""
LATE_MS: Final = 40.0
"""The simulator's limit in ms: above all but one of 1500 responses on a busy machine. Three runs of a scenario
tolerate that one.
"""
OUTLIER_MS: Final = 200.0
"""Limit in ms of one of many attempts; the control timer of a busy machine itself was late by 212 ms, once in
8000 waits. A missed wake-up is later, because the waits are longer.
"""
KAFKA_LATE_MS: Final = 250.0
"""Kafka's own lateness is no fault of the simulator; it was 219 ms when its JVM loaded a compressor. Beyond this
limit in ms nothing can be concluded: the machine was too busy, or the timing itself is wrong. All other causes
that a response could wait for take 300 ms or more.
"""


def distributed_steps(observations: Iterable[Observation]) -> frozenset[str]:
    """Return the steps with so many attempts that they are judged as distributions."""
    attempts = Counter(seen.step for seen in observations if seen.timing.kind is not TimingClass.UNTIMED)
    return frozenset(step for step, count in attempts.items() if count >= LEAST_SAMPLES)


def early_ms(seen: Observation, rounding_ms: float = 0.0) -> float:
    """Return by how many ms a response was too early; 0 if it was not."""
    if seen.timing.kind is TimingClass.UNTIMED:
        return 0.0
    return max(0.0, seen.timing.earliest_ms - rounding_ms - seen.elapsed_ms)


def excused_lateness_ms(seen: Observation) -> float:
    """Return the lateness of a response in ms, without the time for which the machine was stalled."""
    return seen.lateness_ms - min(seen.stalled_ms, max(0.0, seen.lateness_ms))


def late_ms(seen: Observation, limit_ms: float) -> float:
    """Return by how many ms a response was too late; 0 if it was not."""
    if seen.timing.kind is TimingClass.UNTIMED:
        return 0.0
    return max(0.0, excused_lateness_ms(seen) - seen.timing.spread_ms - limit_ms)


def limit_ms(seen: Observation, distributed: frozenset[str]) -> float:
    """Return the simulator's limit for a response in ms, given the steps that are distributions."""
    return OUTLIER_MS if seen.step in distributed else LATE_MS


def is_true_of_kafka(observations: Iterable[Observation]) -> bool:
    """Whether the real Kafka's responses came when the scenario expects them."""
    return not any(early_ms(seen, ROUNDING_MS) or late_ms(seen, KAFKA_LATE_MS) for seen in observations)
