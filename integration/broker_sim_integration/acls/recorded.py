"""The responses of a real Kafka: one line of JSON for each request, with its distinct responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RECORDING: Final = Path(__file__).with_name("recorded.jsonl")


def to_text(rows: Iterable[tuple[str, str, Any]]) -> str:
    """Return the lines for rows of request, rights and outcome."""
    answers: dict[str, dict[str, list[str]]] = {}
    for request, rights, outcome in rows:
        text = json.dumps(outcome, sort_keys=True)
        answers.setdefault(request, {}).setdefault(text, []).append(rights)
    lines = [
        {"asked": request, "answers": [[rights, json.loads(text)] for text, rights in found.items()]}
        for request, found in answers.items()
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def read_recording() -> Iterator[tuple[str, str, Any]]:
    """Yield request, rights and outcome of each row."""
    for line in map(json.loads, RECORDING.read_text("utf-8").splitlines()):
        for rights, outcome in line["answers"]:
            for name in rights:
                yield line["asked"], name, outcome
