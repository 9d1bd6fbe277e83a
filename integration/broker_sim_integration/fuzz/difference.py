"""Differences between both sides' outcomes of one sequence, played once or several times.

Only fields that never agreed count: if one play of the simulator equals one of Kafka's, the outcome is random.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.comparison.differences import DOCUMENT, table_rows
from broker_sim_integration.fuzz.sequence import Request

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Sequence as Several
    from pathlib import Path

    from broker_sim_integration.fuzz.normalise import Fields
    from broker_sim_integration.fuzz.sequence import Sequence

HEADER: Final = ("area", "request", "field", "in the simulator", "reason")
ABSENT: Final = "(no such field)"
CHANCE_HEADER: Final = ("area", "request", "field", "in the simulator, once", "reason")
_INDEX = re.compile(r"\b\d+\b")


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of one outcome that was never equal."""

    area: str
    index: int
    """The index of the action, from 0."""
    action: str
    """The request's API and version, or a text for another action."""
    path: str
    kafka: Any
    sim: Any

    @property
    def kind(self) -> tuple[str, str]:
        """API and field, without version and indexes, which shrinking preserves."""
        return self.action.split(" ")[0], _INDEX.sub("*", self.path)

    def __str__(self) -> str:
        return f"{self.index}: {self.action}: {self.path}: Kafka {self.kafka!r}, here {self.sim!r}"


@dataclass(frozen=True, slots=True)
class KnownFuzzDifference:
    """A row of the table in docs/reference/differences.md; all columns but the reason are patterns."""

    area: str
    request: str
    field: str
    sim: str
    reason: str

    def fits(self, one: Difference) -> bool:
        """Return whether a difference matches the row."""
        pairs = ((one.area, self.area), (one.action, self.request), (one.path, self.field), (str(one.sim), self.sim))
        return all(fnmatch.fnmatchcase(value, pattern) for value, pattern in pairs)


def differences(sequence: Sequence, kafka: Several[list[Fields]], sim: Several[list[Fields]]) -> list[Difference]:
    """Return the fields that were equal in no pair of plays; each play has fields for every action."""
    differing = []
    for index, action in enumerate(sequence.actions):
        name = f"{action.api} {action.version}" if isinstance(action, Request) else str(action)
        paths: dict[str, None] = {}
        for played in (*kafka, *sim):
            paths.update(dict.fromkeys(played[index]))
        for path in paths:
            at_kafka = [played[index].get(path, ABSENT) for played in kafka]
            at_sim = [played[index].get(path, ABSENT) for played in sim]
            if not any(one in at_kafka for one in at_sim):
                differing.append(Difference(sequence.area, index, name, path, at_kafka[0], at_sim[0]))
    return differing


def unknown(candidates: Iterable[Difference], documented: Iterable[KnownFuzzDifference]) -> list[Difference]:
    """Return the differences that match no row."""
    rows = list(documented)
    return [one for one in candidates if not any(row.fits(one) for row in rows)]


def read_known(document: Path = DOCUMENT) -> list[KnownFuzzDifference]:
    """Return the rows of the table of known differences; none without the document."""
    return _rows(document, HEADER)


def read_known_chances(document: Path = DOCUMENT) -> list[KnownFuzzDifference]:
    """Return the rows of the table of random differences, which may differ in one play and agree in the next."""
    return _rows(document, CHANCE_HEADER)


def _rows(document: Path, header: tuple[str, ...]) -> list[KnownFuzzDifference]:
    rows = []
    for *patterns, reason in table_rows(document, header):
        area, request, field, sim = (one.strip("`") for one in patterns)
        rows.append(KnownFuzzDifference(area, request, field, sim, reason))
    return rows
