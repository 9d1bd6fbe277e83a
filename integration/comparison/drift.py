"""Whether two recordings of a real Kafka have the same outcomes; times are not compared.

The shipped recording is compared with a fresh one. A difference means that Kafka behaves in another
way than before, or that a scenario has more than one possible outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from integration.comparison.recorded import RecordedSide
    from integration.observations import Observation

__all__ = ["Drift", "drift_between"]


@dataclass(frozen=True, slots=True)
class Drift:
    """One outcome in which the recordings differ."""

    scenario: str
    step: str
    field: str
    shipped: Any
    fresh: Any

    @property
    def label(self) -> str:
        """The step without the number of the attempt."""
        return self.step.rpartition(" #")[0]

    def __str__(self) -> str:
        return f"{self.scenario}, {self.step}, {self.field}: {self.shipped!r} is now {self.fresh!r}"


def drift_between(shipped: RecordedSide, fresh: RecordedSide) -> Iterator[Drift]:
    """Yield what differs in the scenarios that both recordings have."""
    for name in sorted(shipped.scenarios & fresh.scenarios):
        before = _by_step(shipped.observations_of(name))
        now = _by_step(fresh.observations_of(name))
        for key in before | now:
            step = f"{key[0]} #{key[1]}"
            if key not in before or key not in now:
                yield Drift(name, step, "seen", key in before, key in now)
                continue
            was, is_now = before[key].exact(), now[key].exact()
            for field in was | is_now:
                if was.get(field) != is_now.get(field):
                    yield Drift(name, step, field, was.get(field), is_now.get(field))


def _by_step(observations: Iterable[Observation]) -> dict[tuple[str, int], Observation]:
    return {(seen.step, seen.attempt): seen for seen in observations}
