"""Says whether the tests that failed may be run once more, by themselves.

`python -m tools.second_try CACHE_DIR` reads what a whole run left in pytest's cache. A few failures of
tests in which other people's programs play (clients, a real Kafka, Spark, pip) are named and end with
exit code 0; the caller runs these alone. Anything else ends with 1: more failures than that, a test of
the simulator alone, or a run that did not come to its end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

MOST: Final = 3
WITH_OTHER_PROGRAMS: Final = (
    "tests/clients/",
    "tests/documents/",
    "tests/install/",
    "tests/integration/",
    "tests/real_kafka/",
)
TESTS_FAILED: Final = 1


def refusal(exit_status: int | None, failed: list[str]) -> str | None:
    """Return why there is no second try, None if there is one.

    `exit_status` is that of pytest, None if the run did not tell it; `failed` are test ids.
    """
    if exit_status != TESTS_FAILED or not failed:
        return f"the run did not come to its end (exit status {exit_status}): read its output"
    if len(failed) > MOST:
        return f"{len(failed)} tests failed, more than {MOST}: that is no chance"
    own = [test for test in failed if not test.startswith(WITH_OTHER_PROGRAMS)]
    if own:
        return f"a test without other programs fails only by a fault: {own[0]}"
    return None


def read(cache: Path) -> tuple[int | None, list[str]]:
    """Return pytest's exit status and the ids of the failed tests that the cache keeps."""
    values = cache / "v"
    status, failed = values / "broker_sim" / "exit_status", values / "cache" / "lastfailed"
    return (
        json.loads(status.read_text()) if status.exists() else None,
        list(json.loads(failed.read_text())) if failed.exists() else [],
    )


def main(cache: str) -> int:
    """Print what is run once more, or why nothing is; return the exit code."""
    exit_status, failed = read(Path(cache))
    if reason := refusal(exit_status, failed):
        print(f"no second try: {reason}")
        return 1
    print(f"{len(failed)} failed and run once more, alone; find the cause all the same:")
    for test in failed:
        print(f"  {test}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
