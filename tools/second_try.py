"""Says whether a run passed, and whether what failed may be run once more, by itself.

`python -m tools.second_try PATH` reads what a run left: the folder of pytest's cache, or the report.json
of a comparison. It ends with 0 when all passed. With 75, and their names, when a few failed that the
machine or other people's programs may have made fail by chance: tests with clients, a real Kafka, Spark
or pip in them, tests in real time, and scenarios that were only late, on either side. The caller runs
these alone. Anything else ends with 1: more failures than that, any other test of the simulator alone, a
scenario with another value, or a run that did not come to its end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

MOST: Final = 3
WITH_OTHER_PROGRAMS: Final = (
    "tests/clients/",
    "tests/documents/",
    "tests/install/",
    "tests/integration/",
    "tests/real_kafka/",
)
ONLY_LATE: Final = ("late", "reference late")
"""The verdicts of scenarios in which no value differed."""
FAILED: Final = 1
TRY_AGAIN: Final = 75
"""What `sysexits.h` gives for a failure that may pass."""


class Run(NamedTuple):
    """How a run ended."""

    exit_code: int | None
    """None if the run did not tell it."""
    failed: list[str]
    """Ids of tests, names of scenarios."""
    no_chance: list[str]
    """Those of them that fail only by a fault."""


def refusal(run: Run) -> str | None:
    """Return why there is no second try, None if there is one."""
    if run.exit_code is None or not run.failed:
        return f"the run did not come to its end (exit code {run.exit_code}): read its output"
    if run.no_chance:
        return f"it fails only by a fault: {run.no_chance[0]}"
    if len(run.failed) > MOST:
        return f"{len(run.failed)} failed, more than {MOST}: that is no chance"
    return None


def read_tests(cache: Path) -> Run:
    """Return how the tests ended whose cache that is."""

    def kept(name: str, otherwise: Any) -> Any:
        path = cache / "v" / name
        return json.loads(path.read_text()) if path.exists() else otherwise

    exit_code = kept("broker_sim/exit_status", None)
    failed = list(kept("cache/lastfailed", {}))
    in_real_time = kept("broker_sim/in_real_time", [])
    own = [
        test
        for test in failed
        if not test.startswith(WITH_OTHER_PROGRAMS) and test not in in_real_time
    ]
    return Run(exit_code if exit_code in {0, FAILED} else None, failed, own)


def read_comparison(report: Path) -> Run:
    """Return how the comparison ended that wrote a report.json."""
    if not report.exists():
        return Run(None, [], [])
    document = json.loads(report.read_text())
    verdicts = {found["scenario"]: found["verdict"] for found in document["scenarios"]}
    failed = list(dict.fromkeys(failure["scenario"] for failure in document["failures"]))
    return Run(
        document["exit_code"],
        failed,
        [name for name in failed if verdicts.get(name) not in ONLY_LATE],
    )


def main(path: str) -> int:
    """Print what is run once more, or why nothing is; return the exit code."""
    run = (read_comparison if path.endswith(".json") else read_tests)(Path(path))
    if run.exit_code == 0:
        print("all passed")
        return 0
    if reason := refusal(run):
        print(f"no second try: {reason}")
        return 1
    print(f"{len(run.failed)} failed and run once more, alone; find the cause all the same:")
    for name in run.failed:
        print(f"  {name}")
    return TRY_AGAIN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
