"""Observations of a real run on disk: written by `--record`, read by `--reference recorded`.

A recording is two files: `recording.json` (Kafka's version, date, machine, version of the
catalogue) and `observations.jsonl`. It is valid only for the catalogue that it was made with.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from integration.comparison.runs import Run
from integration.observations import Observation
from integration.reference.errors import ReferenceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from integration.comparison.runs import Configs, Runner
    from integration.comparison.verdict import ScenarioResult
    from integration.scenarios.scenario import Scenario

__all__ = ["RECORDING", "RecordedSide", "write_recording"]

RECORDING: Final = Path(__file__).parents[1] / "reference" / "recorded"
FACTS_FILE: Final = "recording.json"
OBSERVATIONS_FILE: Final = "observations.jsonl"


class RecordedRunner:
    """Returns what was recorded instead of running anything."""

    def __init__(self, observations: dict[str, list[Observation]]) -> None:
        self._observations = observations

    def run(self, scenario: Scenario, repeat: int) -> Run:
        """Return the recorded observations; every repeat is the same."""
        del repeat
        if scenario.name not in self._observations:
            return Run(skipped="was not recorded")
        return Run(list(self._observations[scenario.name]))


class RecordedSide:
    """A recording in place of the real Kafka.

    Raises `ReferenceUnavailableError` when there is none in `directory`, or when it was made with
    a catalogue of another version than `catalogue_version`.
    """

    name = "kafka"

    def __init__(self, catalogue_version: str, directory: Path = RECORDING) -> None:
        facts = directory / FACTS_FILE
        if not facts.exists():
            raise ReferenceUnavailableError(f"there is no recording in {directory}; {_remedy()}")
        self.facts: dict[str, Any] = json.loads(facts.read_text(encoding="utf-8"))
        recorded_version = self.facts["catalogue_version"]
        if recorded_version != catalogue_version:
            raise ReferenceUnavailableError(
                f"the recording in {directory} is of catalogue {recorded_version}, the scenarios "
                f"here are {catalogue_version}; {_remedy()}"
            )
        self._observations: dict[str, list[Observation]] = {}
        with (directory / OBSERVATIONS_FILE).open(encoding="utf-8") as lines:
            for line in lines:
                seen = json.loads(line)
                named = self._observations.setdefault(seen["scenario"], [])
                named.append(Observation.from_json(seen))

    @property
    def scenarios(self) -> frozenset[str]:
        """The names of what was recorded."""
        return frozenset(self._observations)

    def observations_of(self, scenario: str) -> list[Observation]:
        """Return what was observed in a scenario; KeyError when it was not recorded."""
        return list(self._observations[scenario])

    @contextmanager
    def open(self, configs: Configs) -> Iterator[Runner]:
        """Start nothing: a recording serves all configurations."""
        del configs
        yield RecordedRunner(self._observations)


def write_recording(
    directory: Path,
    results: Sequence[ScenarioResult],
    *,
    catalogue_version: str,
    facts: dict[str, Any],
    recorded_at: str,
) -> list[str]:
    """Write the real side's observations of each scenario: the first repeat that was all in time.

    Returns the names of the scenarios that are left out: skipped, in trouble, or never in time.
    Late responses say something about the machine and nothing about Kafka.
    """
    directory.mkdir(parents=True, exist_ok=True)
    document = {**facts, "recorded_at": recorded_at, "catalogue_version": catalogue_version}
    (directory / FACTS_FILE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    left_out = []
    with (directory / OBSERVATIONS_FILE).open("w", encoding="utf-8") as out:
        for result in results:
            sound = next(filter(_is_sound, result.kafka), None)
            if sound is None:
                left_out.append(result.scenario.name)
                continue
            for seen in sound.observations:
                line = {"scenario": result.scenario.name, **seen.to_json()}
                out.write(json.dumps(line, separators=(",", ":")) + "\n")
    return left_out


def _is_sound(run: Run) -> bool:
    if run.trouble or run.skipped:
        return False
    return all(seen.timing.holds(seen.elapsed_ms) for seen in run.observations)


def _remedy() -> str:
    return "record one: broker-sim-compare --reference jvm --record"
