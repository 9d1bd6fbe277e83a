"""A real Kafka's outcomes in the cases of a table: a file `recorded.jsonl` with one line per case."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_cases(file: Path, outcomes: Mapping[str, list[Any]]) -> None:
    """Write the outcome of each case."""
    lines = (json.dumps({"case": case, "seen": outcome}) for case, outcome in outcomes.items())
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def read_cases(file: Path) -> dict[str, list[Any]]:
    """Return the outcome of each case."""
    lines = map(json.loads, file.read_text("utf-8").splitlines())
    return {line["case"]: line["seen"] for line in lines}
