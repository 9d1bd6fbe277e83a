"""The files of the lessons beside the packages: scenarios of the comparison, and rows of the recording."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from broker_sim_integration.comparison.recorded import RecordedSide

HERE: Final = Path(__file__).parent / "lessons"
INTEGRATION: Final = Path(__file__).parents[2] / "integration"
PACKAGE: Final = "broker_sim_integration"
_MODULES: Final = f"""
import sys
sys.path.insert(0, sys.argv[1])
import playground_lessons
for lesson in playground_lessons.lessons():
    for part in lesson.parts:
        playground_lessons.scenario_of(part)
print(*sorted(name for name in sys.modules if name.split(".")[0] == "{PACKAGE}"))
"""


def recording(scenarios: list[str]) -> dict[str, Any]:
    """Return the rows of a real Kafka, its version and the date, by scenario: folder, module and function."""
    recorded = RecordedSide()
    runs = {name: run for run in recorded.runs for name in run["scenarios"]}
    answers = {}
    for scenario in scenarios:
        name = scenario.rpartition(".")[2]
        rows = [{**row.to_json(), "fields": dict(row.fields)} for row in recorded.observations_of(name)]
        run = runs[name]
        answers[scenario] = {"rows": rows, "kafka": run["kafka_version"], "recorded": run["recorded_at"][:10]}
    return answers


def lesson_files(scenarios: list[str]) -> dict[str, bytes]:
    """Return the files of `lessons/`, the modules that they import of the comparison, and the recorded rows."""
    files = {path.name: path.read_bytes() for path in sorted(HERE.iterdir()) if path.suffix in {".py", ".toml"}}
    files["recorded.json"] = json.dumps(recording(scenarios), separators=(",", ":")).encode()
    command = [sys.executable, "-c", _MODULES, str(HERE)]
    for module in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split():
        path = INTEGRATION.joinpath(*module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        files[path.relative_to(INTEGRATION).as_posix()] = path.read_bytes()
    return files
