"""Whether two recordings of a real Kafka have the same outcomes; times are not compared.

The shipped recording is compared with a fresh one, field by field and without exception: random values are
replaced by names when they are observed, in `broker_sim_integration.scenarios.helpers.normalise`. A
difference means that Kafka behaves differently than before, or that a scenario has more than one
possible outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim_integration.comparison.recorded import RecordedSide
    from broker_sim_integration.observations import Observation


@dataclass(frozen=True, slots=True)
class Drift:
    """One outcome in which the recordings differ."""

    scenario: str
    step: str
    field: str
    shipped: Any
    fresh: Any

    def __str__(self) -> str:
        return f"{self.scenario}, {self.step}, {self.field}: {self.shipped!r} is now {self.fresh!r}"


def comparable(shipped: RecordedSide, fresh: RecordedSide) -> list[str]:
    """Return the scenarios that both recordings have in the same version, sorted by name."""
    return sorted(name for name, version in fresh.versions.items() if shipped.versions.get(name) == version)


def drift_between(shipped: RecordedSide, fresh: RecordedSide) -> Iterator[Drift]:
    """Yield the differences in the `comparable` scenarios."""
    for name in comparable(shipped, fresh):
        before = _by_step(shipped.observations_of(name))
        now = _by_step(fresh.observations_of(name))
        for key in before | now:
            step = f"{key[0]} #{key[1]}"
            if key not in before or key not in now:
                yield Drift(name, step, "seen", key in before, key in now)
                continue
            was, is_now = _outcome(before[key]), _outcome(now[key])
            for field in was | is_now:
                if was.get(field) != is_now.get(field):
                    yield Drift(name, step, field, was.get(field), is_now.get(field))


def _outcome(seen: Observation) -> dict[str, Any]:
    return seen.exact() | {"timing": seen.timing.kind.value}


def _by_step(observations: Iterable[Observation]) -> dict[tuple[str, int], Observation]:
    return {(seen.step, seen.attempt): seen for seen in observations}
