"""The known and explained differences: the table in docs/reference/differences.md.

A row has patterns (`*`, `?`) for scenario, step, field and the simulator's value, and the reason. A
difference that matches a row does not fail a comparison; it is shown as documented.
"""

from __future__ import annotations

import fnmatch
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DOCUMENT: Final = Path(__file__).with_name("differences.md")
"""In the repository a link to docs/reference/differences.md; a wheel contains the page itself."""
HEADER: Final = ("scenario", "step", "field", "simulator", "reason")


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """One row of the table, for one scenario."""

    scenario: str
    step: str
    field: str
    sim: str
    """The simulator's value of this field, as text; `None` if it has no such field."""
    reason: str

    def fits(self, scenario: str, step: str, field: str, sim: Any) -> bool:
        """Whether the difference matches the row."""
        values = (scenario, step, field, str(sim))
        return all(map(fnmatch.fnmatchcase, values, astuple(self)))


def read_known_differences(document: Path = DOCUMENT) -> list[KnownDifference]:
    """Return the rows of the table with this `HEADER`, split where a row names several scenarios.

    Empty without such a document. Raise ValueError, with the line, for a row of another width.
    """
    known: list[KnownDifference] = []
    for scenarios, *patterns, reason in table_rows(document, HEADER):
        step, field, sim = (pattern.strip("`") for pattern in patterns)
        for scenario in scenarios.split(","):
            named = scenario.strip().strip("`")
            known.append(KnownDifference(named, step, field, sim, reason))
    return known


def table_rows(document: Path, header: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of each row of the tables with this header; nothing without such a document.

    Raise ValueError, with the line, for a row of another width.
    """
    if not document.exists():
        return
    in_table = False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells == list(header):
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not set(line) <= set("|-: "):
            if len(cells) != len(header):
                raise ValueError(f"{document.name}:{number}: {len(cells)} cells, expected {len(header)}")
            yield cells


def reason_for(known: Iterable[KnownDifference], scenario: str, step: str, field: str, sim: Any) -> str | None:
    """Return the reason for a difference in the table, or None if no row matches."""
    return next((row.reason for row in known if row.fits(scenario, step, field, sim)), None)
