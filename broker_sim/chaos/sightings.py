"""Sightings of a search: faults that took effect, and conditions and places that at least one seed must see.

They prove that the faults of a green search hit the critical places. `Chaos.sometimes` and `Chaos.reached` name what
to see; `Sightings` counts the seeds that saw it. The names of places are read from the test's code before it runs,
because a place that is never reached cannot name itself.
"""

from __future__ import annotations

import dis
from collections import Counter
from itertools import pairwise, starmap
from types import CodeType, CoroutineType, FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REACHED: Final = "reached"
"""Name of the method of `Chaos` whose argument names a place in the code."""
MIN_SEEDS: Final = 2
"""Minimum number of seeds of a search; a single seed is only inspected or repeated."""
ADVICE_WITHOUT_SIGHTING: Final = (
    "run more seeds, name the faults that cause it, or keep the workers busy until the last fault is over"
)
ADVICE_WITHOUT_FAULTS: Final = "await chaos.faults_over() in the test, after starting as many workers as workers= says"
ADVICE_WITHOUT_EFFECT: Final = (
    "keep the workers busy until the last fault is over, and name faults= that can affect them"
)


class FaultCount(NamedTuple):
    """The number of faults that were drawn, that happened, and that took effect.

    A fault takes effect if it stopped or cut off a busy worker, hit a request, or changed a leader; other faults of
    brokers, if clients and brokers exchanged messages meanwhile.
    """

    drawn: int = 0
    happened: int = 0
    effective: int = 0

    def __str__(self) -> str:
        return f"{self.effective}/{self.happened}/{self.drawn}"


def places_in(test: CoroutineType[Any, Any, Any]) -> set[str]:
    """Return the names in calls `chaos.reached("name")` of a test and of the functions that it uses.

    Those are its arguments, the functions around it, and the functions of its module; `test` has not begun yet.
    """
    return {name for each in _codes_of(test) for name in _places(each)}


def names_in(test: CoroutineType[Any, Any, Any]) -> set[str]:
    """Return the names, also of attributes, in a test and in the functions that it uses."""
    return {name for each in _codes_of(test) for name in each.co_names}


def _codes_of(test: CoroutineType[Any, Any, Any]) -> Iterator[CodeType]:
    frame, before = test.cr_frame, set[CodeType]()
    if frame is None:  # the coroutine was closed
        return
    yield from _codes(test.cr_code, frame.f_globals, before)
    for each in frame.f_locals.values():
        if isinstance(each, FunctionType):
            yield from _codes(each.__code__, each.__globals__, before)


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
    """The number of seeds of a search, its faults, and the number of seeds that saw each named condition."""

    def __init__(self) -> None:
        self.seeds = 0
        self.counts: Counter[str] = Counter()
        self.faults: dict[str, FaultCount] = {}
        """The number of faults by kind."""

    def add(self, seen: Mapping[str, bool], faults: Mapping[str, Sequence[int]], seeds: int = 1) -> None:
        """Add the sightings and faults of a seed, or of several equal seeds."""
        self.seeds += seeds
        for name, is_seen in seen.items():
            self.counts[name] += seeds * is_seen
        for kind, count in faults.items():
            before = self.faults.get(kind, FaultCount())
            self.faults[kind] = FaultCount(*(old + seeds * new for old, new in zip(before, count, strict=True)))

    @property
    def never(self) -> list[str]:
        """The names that no seed of the search saw; empty for a single seed, which is not a search."""
        return [] if self.seeds < MIN_SEEDS else [name for name, count in self.counts.items() if not count]

    @property
    def all_faults(self) -> FaultCount:
        """The number of faults of all kinds."""
        return FaultCount(*map(sum, zip(*self.faults.values(), strict=True)))

    def failure(self) -> str | None:
        """Return why the search fails although its seeds may have passed; None if it does not."""
        faults = self.all_faults
        if self.seeds >= MIN_SEEDS and faults.drawn and not faults.effective:
            advice = ADVICE_WITHOUT_EFFECT if faults.happened else ADVICE_WITHOUT_FAULTS
            return f"no fault took effect in {self.seeds} seeds, {faults.happened} of {faults.drawn} happened; {advice}"
        if not self.never:
            return None
        return f"never seen in {self.seeds} seeds: {', '.join(map(repr, self.never))}; {ADVICE_WITHOUT_SIGHTING}"

    def lines(self) -> list[str]:
        """Return the lines of a summary."""
        lines = []
        if (faults := self.all_faults).drawn:
            kinds = ", ".join(starmap("{} {}".format, sorted(self.faults.items())))
            lines.append(f"faults that took effect / happened / were drawn: {faults} ({kinds})")
        if self.counts:
            seen = (f"{name!r} in {count} of {self.seeds} seeds" for name, count in self.counts.items())
            lines.append(f"seen: {', '.join(seen)}")
        return lines
