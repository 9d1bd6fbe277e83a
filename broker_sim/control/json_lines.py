"""JSON lines: files with one JSON value on each line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse_json_lines(lines: Iterable[str]) -> list[Any]:
    """Return the values of all non-empty lines. Raises ValueError with the number of a line that is not JSON."""
    values = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except ValueError as error:
                raise ValueError(f"line {number} is not JSON: {error}") from error
    return values
