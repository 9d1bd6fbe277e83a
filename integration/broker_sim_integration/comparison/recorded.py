"""Observations of a real run on disk: written by `--record`, read by `--reference recorded`.

A recording is two files. `observations.jsonl` has a line per observation. `recording.json` lists the runs that
they come from, each with its facts (Kafka's version, date, machine, control timer) and its scenarios with their
versions and durations. A scenario whose recorded version differs is not played.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol.release import DEFAULT_RELEASE
from broker_sim_integration.comparison.distribution import Distribution
from broker_sim_integration.comparison.runs import Run
from broker_sim_integration.comparison.timeliness import is_true_of_kafka
from broker_sim_integration.comparison.version import scenario_version
from broker_sim_integration.observations import Observation
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.scenarios.catalogue import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from broker_sim_integration.comparison.runs import Configs, Runner
    from broker_sim_integration.comparison.verdict import ScenarioResult
    from broker_sim_integration.scenarios.scenario import Scenario

    VersionOf = Callable[[Scenario], str]

RECORDINGS: Final = Path(__file__).parents[1] / "reference" / "recorded"
"""The shipped recordings, each in a folder named after its release."""
RECORDING: Final = RECORDINGS / DEFAULT_RELEASE
FACTS_FILE: Final = "recording.json"
OBSERVATIONS_FILE: Final = "observations.jsonl"
CONTROL: Final = "control_timer_ms"
HOW_TO_RECORD: Final = (
    "broker-sim-compare --reference jvm --record records all, with --scenario NAME only that one, "
    "with --as-version that release"
)


class RecordedSide:
    """A recorded Kafka in place of a running one.

    Raise `ReferenceUnavailableError` if there is no recording in `directory`.
    """

    name = "kafka"

    def __init__(self, directory: Path = RECORDING, *, version_of: VersionOf = scenario_version) -> None:
        facts_file = directory / FACTS_FILE
        if not facts_file.exists():
            raise ReferenceUnavailableError(f"no recording in {directory}; {HOW_TO_RECORD}")
        self.runs: list[dict[str, Any]] = json.loads(facts_file.read_text(encoding="utf-8"))["runs"]
        """The facts of the recorded runs, the newest last."""
        self.versions: dict[str, str] = {}
        """The version of each recorded scenario, by name."""
        self.durations_ms: dict[str, int] = {}
        """Duration of each scenario on the real side in ms, by name."""
        self._controls: dict[str, Distribution | None] = {}
        for run in self.runs:
            for name, recorded in run["scenarios"].items():
                self._controls[name] = _control(run)
                self.versions[name] = recorded["version"]
                self.durations_ms[name] = recorded["duration_ms"]
        self._version_of = version_of
        self._observations: dict[str, list[Observation]] = {name: [] for name in self.versions}
        with (directory / OBSERVATIONS_FILE).open(encoding="utf-8") as lines:
            for seen in map(json.loads, lines):
                self._observations[seen["scenario"]].append(Observation.from_json(seen))

    @property
    def control(self) -> Distribution | None:
        """Lateness of the control timer in the newest run, or None if it had none."""
        return _control(self.runs[-1]) if self.runs else None

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of the newest run."""
        newest = self.runs[-1] if self.runs else {}
        return {name: fact for name, fact in newest.items() if name != "scenarios"}

    def observations_of(self, scenario: str) -> list[Observation]:
        """Return the observations of a scenario; raise KeyError if it was not recorded."""
        return list(self._observations[scenario])

    @contextmanager
    def open(self, configs: Configs) -> Iterator[Runner]:
        """Start nothing: a recording serves all configurations."""
        del configs
        yield self

    def run(self, scenario: Scenario, repeat: int) -> Run:
        """Return the recorded observations; every repeat is the same."""
        del repeat
        recorded = self.versions.get(scenario.name)
        if recorded is None:
            return Run(skipped=f"not recorded; {HOW_TO_RECORD}")
        if recorded != self._version_of(scenario):
            return Run(skipped=f"recorded at another version of the scenario; {HOW_TO_RECORD}")
        return Run(self.observations_of(scenario.name), control=self._controls[scenario.name])


def write_recording(
    directory: Path,
    results: Sequence[ScenarioResult],
    *,
    facts: dict[str, Any],
    recorded_at: str,
    control: Distribution | None = None,
    version_of: VersionOf = scenario_version,
    catalogue: Iterable[Scenario] = CATALOGUE,
) -> list[str]:
    """Write the real side's observations into the recording: the first repeat whose responses were all in time.

    Other scenarios of `catalogue` that are recorded there already remain. Return the names of the scenarios
    that could not be recorded: not played, in trouble, or never in time. Late responses say something about
    the machine and nothing about Kafka.
    """
    runs: list[dict[str, Any]] = []
    observations: dict[str, list[Observation]] = {}
    if (directory / FACTS_FILE).exists():
        before = RecordedSide(directory)
        runs = before.runs
        observations = {name: before.observations_of(name) for name in before.versions}
    fresh: dict[str, dict[str, Any]] = {}
    left_out = []
    for result in results:
        sound = next(filter(_is_sound, result.kafka), None)
        if sound is None:
            left_out.append(result.scenario.name)
        else:
            fresh[result.scenario.name] = {
                "version": version_of(result.scenario),
                "duration_ms": round(sound.duration_ms),
            }
            observations[result.scenario.name] = sound.observations
    order = [scenario.name for scenario in catalogue]
    for run in runs:
        run["scenarios"] = {
            name: recorded for name, recorded in run["scenarios"].items() if name in order and name not in fresh
        }
    machine = {} if control is None else {CONTROL: asdict(control)}
    runs.append({**facts, "recorded_at": recorded_at, **machine, "scenarios": fresh})
    _write(directory, [run for run in runs if run["scenarios"]], order, observations)
    return left_out


def _write(
    directory: Path, runs: list[dict[str, Any]], order: Iterable[str], observations: dict[str, list[Observation]]
) -> None:
    lines = [_line(name, seen) for name in order for seen in observations.get(name, ())]
    directory.mkdir(parents=True, exist_ok=True)
    document = json.dumps({"runs": runs}, indent=1)
    (directory / FACTS_FILE).write_text(document + "\n", encoding="utf-8")
    (directory / OBSERVATIONS_FILE).write_text("".join(lines), encoding="utf-8")


def _line(scenario: str, seen: Observation) -> str:
    """Return a line; raise ValueError if reading it would give other values than were observed."""
    line = json.dumps({"scenario": scenario, **seen.to_json()}, separators=(",", ":"))
    if Observation.from_json(json.loads(line)).fields != seen.fields:
        raise ValueError(
            f"{scenario}, step {seen.step!r}: JSON changes what was observed; use lists, not tuples, and texts as keys"
        )
    return line + "\n"


def _control(run: dict[str, Any]) -> Distribution | None:
    return Distribution(**run[CONTROL]) if CONTROL in run else None


def _is_sound(run: Run) -> bool:
    if run.trouble or run.skipped:
        return False
    return is_true_of_kafka(run.observations)
