"""What Kafka 4.4.0 did: one line of JSON for each case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORDING: Final = Path(__file__).with_name("recorded.jsonl")


def to_text(outcomes: Mapping[str, list[Any]]) -> str:
    """Return the lines."""
    return "".join(f"{json.dumps({'case': each, 'seen': outcomes[each]})}\n" for each in outcomes)


def read_recording() -> dict[str, list[Any]]:
    """Return what was seen, by case."""
    lines = map(json.loads, RECORDING.read_text("utf-8").splitlines())
    return {line["case"]: line["seen"] for line in lines}
