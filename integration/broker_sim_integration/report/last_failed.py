"""The failures of the last comparison, read from its report.json, so that they can be played again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.comparison.verdict import Verdict
from broker_sim_integration.report.report import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from broker_sim_integration.scenarios.scenario import Scenario

REPORT: Final = "report.json"
BEFORE: Final = "before"
"""The folder to which the files of the last report are moved."""
FAILED: Final = frozenset({*FAULTS, Verdict.REFERENCE_TROUBLE, Verdict.REFERENCE_LATE})
"""Verdicts with which a comparison has an exit code other than 0."""


@dataclass(frozen=True, slots=True)
class LastComparison:
    """The result of the last comparison in a folder."""

    report: Path
    exit_code: int
    scenarios: frozenset[str]
    """The names of the scenarios that failed."""
    others: tuple[str, ...]
    """Other failures: the lateness of all responses of one kind, which no single scenario can repeat."""

    def failed_of(self, scenarios: Iterable[Scenario]) -> list[Scenario]:
        """Return the failed ones of `scenarios`; raise ValueError if only other scenarios failed."""
        failed = [scenario for scenario in scenarios if scenario.name in self.scenarios]
        if self.scenarios and not failed:
            raise ValueError(f"--scenario leaves out all {len(self.scenarios)} scenarios that failed in {self.report}")
        return failed

    def exit_code_with(self, exit_code: int) -> int:
        """Return the exit code after the failed scenarios were played again with `exit_code`."""
        return exit_code or int(bool(self.others))


def read_last_comparison(directory: Path) -> LastComparison:
    """Read the report of the last comparison whose files are in `directory`.

    Raise ValueError, with one line, if there is no report or it cannot be read.
    """
    path = directory / REPORT
    if not path.exists():
        raise ValueError(f"--last-failed: no report of a comparison at {path}; run a comparison first")
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        verdicts = {one["scenario"]: Verdict(one["verdict"]) for one in document["scenarios"]}
        names = [failure["scenario"] for failure in document["failures"]]
        exit_code = int(document["exit_code"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"--last-failed: {path} is not a report of a comparison: {error!r}") from None
    return LastComparison(
        report=path,
        exit_code=exit_code,
        scenarios=frozenset(name for name, verdict in verdicts.items() if verdict in FAILED),
        others=tuple(name for name in names if name not in verdicts),
    )


def keep_report(directory: Path, names: Iterable[str]) -> None:
    """Move the files of the last report with these names into its folder `BEFORE`."""
    before = directory / BEFORE
    before.mkdir(exist_ok=True)
    for path in (directory / name for name in names):
        if path.exists():
            path.replace(before / path.name)
