"""The expected duration of a comparison, from the recorded durations of its scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.comparison.recorded import RecordedSide
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.selection import ReferenceKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim_integration.scenarios.scenario import Scenario

START_S: Final = {
    ReferenceKind.CONTAINERS: 13,
    ReferenceKind.JVM: 11,
    ReferenceKind.BOOTSTRAP: 1,
    ReferenceKind.RECORDED: 1,
}
"""Time in seconds that three nodes take to start and to warm up."""


def announcement(scenarios: Sequence[Scenario], kind: ReferenceKind, repeats: int) -> str:
    """Return one line: the number of scenarios and clusters, and the expected duration."""
    clusters = len({scenario.configs for scenario in scenarios})
    what = f"{_counted(len(scenarios), 'scenario')} on {_counted(clusters, 'cluster')} of each side"
    durations_ms = _recorded_durations_ms()
    known_ms = [durations_ms.get(scenario.name) for scenario in scenarios]
    if None in known_ms:
        return f"{what}; how long that takes is not recorded"
    played_s = repeats * sum(filter(None, known_ms)) / 1000
    start_s = clusters * START_S[kind]
    return f"{what}; about {_time(start_s + played_s)}, of which {_time(start_s)} to start them"


def _recorded_durations_ms() -> Mapping[str, int]:
    try:
        return RecordedSide().durations_ms
    except ReferenceUnavailableError:
        return {}


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
