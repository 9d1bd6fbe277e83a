r"""Regular expressions of clients, matched in time linear in the text, as RE2/J does in Kafka.

The tree of an expression (`broker_sim/regex/re2j.py`) becomes a program for a machine that is in all of its possible
places at once. So no expression makes matching exponential, and none can hold the loop.

Deliberate difference: an expression of more than `MAX_CHARACTERS`, `MAX_INSTRUCTIONS` or `MAX_DEPTH` is refused,
where RE2/J has no limit but memory.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

from broker_sim.regex.characters import negated
from broker_sim.regex.re2j import TOO_LARGE, Alternatives, Characters, Edge, Node, RegexError, Repeat, Sequence, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.regex.characters import Ranges

T = TypeVar("T")

MAX_CHARACTERS: Final = 5_000
"""Maximum length of an expression, so that it is parsed in milliseconds."""
MAX_INSTRUCTIONS: Final = 2_000
"""Maximum number of instructions of a program; each step of a match visits each at most once."""
MAX_DEPTH: Final = 200
"""Maximum depth of groups and repeats within each other, so that a program is built within Python's stack."""
MAX_KNOWN_PLACES: Final = 200_000
"""Maximum number of places in all cached steps of a pattern, about ten MB."""
QUICK_STEPS: Final = 100_000
"""Number of steps, one instruction and one character each, that take about ten milliseconds."""

MOST_SETS: Final = 256
"""Maximum number of cached tests of characters."""
MOST_PROGRAMS: Final = 32
"""Maximum number of cached programs, about 20 MB: a group's expressions are parsed again when they are resolved."""

EDGE: Final = ""
"""In place of the character before the first and behind the last."""


class Pattern:
    """A parsed expression. Not thread-safe."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._program = _program_of(text)
        self._known: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}
        self._known_places = 0

    @property
    def size(self) -> int:
        """Number of instructions of the expression."""
        return self._program.end

    def matches(self, text: str) -> bool:
        """Return whether the expression matches the whole text."""
        places, before = frozenset([0]), EDGE
        for character in text:
            places = self._next(places, before, character)
            if not places:
                return False
            before = character
        return self._program.end in self._program.reached(places, before, EDGE)

    def _next(self, places: frozenset[int], before: str, character: str) -> frozenset[int]:
        step = (places, before if self._program.looks_back else EDGE, character)
        next_places = self._known.get(step)
        if next_places is None:
            next_places = self._program.after(places, before, character)
            self._known_places += 1 + len(next_places)
            if self._known_places > MAX_KNOWN_PLACES:
                self._known.clear()
                self._known_places = 1 + len(next_places)
            self._known[step] = next_places
        return next_places


class _Program:
    """Instructions: a test of a character or of a place's two neighbours, or where to go on."""

    def __init__(self) -> None:
        self._tests: dict[int, Callable[[str], bool]] = {}
        self._edges: dict[int, Callable[[str, str], bool]] = {}
        self._jumps: dict[int, list[int]] = {}
        self.end = 0
        """The place behind the last instruction, so their number."""

    @property
    def looks_back(self) -> bool:
        """Whether a step depends on the character before."""
        return bool(self._edges)

    def reached(self, places: Iterable[int], before: str, after: str) -> set[int]:
        """Return the places that are reached between two characters."""
        reached: set[int] = set()
        waiting = list(places)
        while waiting:
            place = waiting.pop()
            if place in reached:
                continue
            reached.add(place)
            if place in self._jumps:
                waiting += self._jumps[place]
            elif place in self._edges and self._edges[place](before, after):
                waiting.append(place + 1)
        return reached

    def after(self, places: Iterable[int], before: str, character: str) -> frozenset[int]:
        """Return the places behind a character."""
        tests = self._tests
        reached = self.reached(places, before, character)
        return frozenset(one + 1 for one in reached if one in tests and tests[one](character))

    def add(self, node: Node, depth: int = 0) -> None:
        """Add the instructions of a tree."""
        if depth > MAX_DEPTH:
            raise RegexError("expression nests too deeply")
        match node:
            case Characters():
                self._tests[self._take()] = _test(node.ranges)
            case Edge():
                self._edges[self._take()] = node.holds
            case Sequence():
                for part in node.parts:
                    self.add(part, depth + 1)
            case Alternatives():
                self._add_branches(node, depth + 1)
            case Repeat():
                self._add_repeat(node, depth + 1)

    def _take(self) -> int:
        if self.end >= MAX_INSTRUCTIONS:
            raise RegexError(TOO_LARGE)
        self.end += 1
        return self.end - 1

    def _add_branches(self, node: Alternatives, depth: int) -> None:
        fork = self._take()
        self._jumps[fork], exits = [], []
        for branch in node.branches:
            self._jumps[fork].append(self.end)
            self.add(branch, depth)
            exits.append(self._take())
        self._jumps |= {one: [self.end] for one in exits}

    def _add_repeat(self, node: Repeat, depth: int) -> None:
        for _ in range(node.least):
            begin = self.end
            self.add(node.part, depth)
            if self.end == begin:
                break  # what is empty is the same however often it is repeated
        if node.most is None:
            fork = self._take()
            self.add(node.part, depth)
            self._jumps[self._take()] = [fork]
            self._jumps[fork] = [fork + 1, self.end]
            return
        forks = []
        for _ in range(node.most - node.least):
            forks.append(self._take())
            self.add(node.part, depth)
        self._jumps |= {one: [one + 1, self.end] for one in forks}


@lru_cache(maxsize=MOST_PROGRAMS)
def _program_of(text: str) -> _Program:
    """Return the program, which nobody changes any more: several threads may use it."""
    program = _Program()
    program.add(parse(text))
    return program


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


@lru_cache(maxsize=MOST_SETS)
def _test(ranges: Ranges) -> Callable[[str], bool]:
    """Return the test whether a character is in the set."""
    if _is_single(ranges):
        return chr(ranges[0][0]).__eq__
    others = negated(ranges)
    if _is_single(others):
        return chr(others[0][0]).__ne__
    firsts = [first for first, _ in ranges]
    lasts = [last for _, last in ranges]

    def test(character: str) -> bool:
        code = ord(character)
        index = bisect_right(firsts, code) - 1
        return index >= 0 and code <= lasts[index]

    return test


def compile_pattern(text: str) -> Pattern:
    """Return the expression. Raises `RegexError` for one that RE2/J refuses or that is too large."""
    if len(text) > MAX_CHARACTERS:
        raise RegexError(TOO_LARGE)
    return Pattern(text)


def match_at_once_or_beside(
    match: Callable[[], T],
    on_done: Callable[[T], object],
    patterns: Iterable[Pattern],
    texts: Iterable[str],
    run_beside: Callable[[Callable[[], T], Callable[[T], object]], None],
) -> None:
    """Call `on_done(match())`, which matches these expressions with all of the texts.

    Where that may hold others up, `run_beside(match, on_done)` does it.
    """
    if sum(one.size for one in patterns) * sum(map(len, texts)) > QUICK_STEPS:
        run_beside(match, on_done)
    else:
        on_done(match())
