"""Sightings: conditions and places that at least one seed of a search has to see.

With them a green test proves that its faults hit where it hurts.

`Chaos.sometimes` and `Chaos.reached` note it by name, a search counts the seeds that saw it (`Sightings`). A place
that no run reaches cannot name itself, so the names are read from the test's code before it runs.
"""

from __future__ import annotations

import dis
from collections import Counter
from itertools import pairwise
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REACHED: Final = "reached"
"""The method of `Chaos` whose argument names a place in the code."""
FEWEST_SEEDS: Final = 2
"""Fewest seeds that are a search: one seed alone is looked at, or repeated."""
ADVICE: Final = (
    "run more seeds, name the faults that bring it about, or give the workers work until the last fault is over"
)


def places_in(code: CodeType, namespace: Mapping[str, Any]) -> set[str]:
    """Return the names of the calls `chaos.reached("name")` in a test, and in functions of its module that it names."""
    return {name for each in _codes(code, namespace, set()) for name in _places(each)}


def _codes(code: CodeType, namespace: Mapping[str, Any], before: set[CodeType]) -> Iterator[CodeType]:
    if code in before:
        return
    before.add(code)
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant, namespace, before)
    for name in code.co_names:
        function = namespace.get(name)
        if isinstance(function, FunctionType) and function.__globals__ is namespace:
            yield from _codes(function.__code__, namespace, before)


def _places(code: CodeType) -> Iterator[str]:
    for method, argument in pairwise(dis.get_instructions(code)):
        if method.argval == REACHED and isinstance(argument.argval, str) and argument.opname.startswith("LOAD_CONST"):
            yield argument.argval


class Sightings:
    """The number of seeds of a search, and of those that saw each thing which has to be seen."""

    def __init__(self) -> None:
        self.seeds = 0
        self.counts: Counter[str] = Counter()

    def add(self, seen: Mapping[str, bool], seeds: int = 1) -> None:
        """Count what a seed saw, and what it had to look for; the same for several seeds."""
        self.seeds += seeds
        for name, is_seen in seen.items():
            self.counts[name] += seeds * is_seen

    @property
    def never(self) -> list[str]:
        """The names of what no seed of the search saw; empty for a single seed, which is no search."""
        return [] if self.seeds < FEWEST_SEEDS else [name for name, count in self.counts.items() if not count]

    def failure(self) -> str | None:
        """Return why the search fails although its seeds may have passed; None if all was seen."""
        if not self.never:
            return None
        return f"never seen in {self.seeds} seeds: {', '.join(map(repr, self.never))}; {ADVICE}"

    def __str__(self) -> str:
        return ", ".join(f"{name!r} in {count} of {self.seeds} seeds" for name, count in self.counts.items())
