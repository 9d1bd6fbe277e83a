r"""Regular expressions from clients, matched in linear time like RE2/J does in Kafka.

The syntax tree of an expression (`broker_sim/regex/re2j.py`) is compiled to the program of a nondeterministic
automaton. Matching is never exponential, so no expression can block the event loop.

Deliberate difference: an expression above `MAX_CHARACTERS`, `MAX_INSTRUCTIONS` or `MAX_DEPTH` is rejected; RE2/J is
limited only by memory.
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
"""Maximum length of an expression in characters, which keeps parsing to milliseconds."""
MAX_INSTRUCTIONS: Final = 2_000
"""Maximum number of instructions in a program; matching one character visits each at most once."""
MAX_DEPTH: Final = 200
"""Maximum nesting depth of groups and repetitions, so that compiling does not overflow Python's stack."""
MAX_CACHED_PLACES: Final = 200_000
"""Maximum number of places in all cached steps of one pattern, about 10 MB."""
QUICK_STEPS: Final = 100_000
"""Number of steps (instructions times characters) that run on the event loop, about 10 ms."""

MAX_CACHED_TESTS: Final = 256
"""Maximum number of cached character tests."""
MAX_CACHED_PROGRAMS: Final = 32
"""Maximum number of cached programs, about 20 MB; resolving a group's expressions again then skips the parser."""

EDGE: Final = ""
"""Stands for the missing character before the first and after the last one."""


class Pattern:
    """A compiled expression. Not thread-safe."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._program = _program_of(text)
        self._cached_steps: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}
        self._cached_places = 0

    @property
    def size(self) -> int:
        """Number of instructions in the compiled program."""
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
        next_places = self._cached_steps.get(step)
        if next_places is None:
            next_places = self._program.after(places, before, character)
            self._cached_places += 1 + len(next_places)
            if self._cached_places > MAX_CACHED_PLACES:
                self._cached_steps.clear()
                self._cached_places = 1 + len(next_places)
            self._cached_steps[step] = next_places
        return next_places


class _Program:
    """Instructions at numbered places: a character test, an edge test (such as `^`), or a jump."""

    def __init__(self) -> None:
        self._tests: dict[int, Callable[[str], bool]] = {}
        self._edges: dict[int, Callable[[str, str], bool]] = {}
        self._jumps: dict[int, list[int]] = {}
        self.end = 0
        """The place after the last instruction, equal to the number of instructions."""

    @property
    def looks_back(self) -> bool:
        """Whether a step depends on the previous character."""
        return bool(self._edges)

    def reached(self, places: Iterable[int], before: str, after: str) -> set[int]:
        """Return all places reachable from `places` without consuming a character."""
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
        """Return the places after consuming `character`."""
        tests = self._tests
        reached = self.reached(places, before, character)
        return frozenset(place + 1 for place in reached if place in tests and tests[place](character))

    def add(self, node: Node, depth: int = 0) -> None:
        """Append the instructions of a syntax tree. Raises RegexError if it is too large or nests too deeply."""
        if depth > MAX_DEPTH:
            raise RegexError("expression nests too deeply")
        match node:
            case Characters():
                self._tests[self._next_place()] = _test(node.ranges)
            case Edge():
                self._edges[self._next_place()] = node.holds
            case Sequence():
                for part in node.parts:
                    self.add(part, depth + 1)
            case Alternatives():
                self._add_branches(node, depth + 1)
            case Repeat():
                self._add_repeat(node, depth + 1)

    def _next_place(self) -> int:
        """Return the place of the next instruction. Raises RegexError if the program is full."""
        if self.end >= MAX_INSTRUCTIONS:
            raise RegexError(TOO_LARGE)
        self.end += 1
        return self.end - 1

    def _add_branches(self, node: Alternatives, depth: int) -> None:
        fork = self._next_place()
        self._jumps[fork], exits = [], []
        for branch in node.branches:
            self._jumps[fork].append(self.end)
            self.add(branch, depth)
            exits.append(self._next_place())
        self._jumps |= {exit_place: [self.end] for exit_place in exits}

    def _add_repeat(self, node: Repeat, depth: int) -> None:
        for _ in range(node.least):
            begin = self.end
            self.add(node.part, depth)
            if self.end == begin:
                break  # repeating an empty expression changes nothing
        if node.most is None:
            fork = self._next_place()
            self.add(node.part, depth)
            self._jumps[self._next_place()] = [fork]
            self._jumps[fork] = [fork + 1, self.end]
            return
        forks = []
        for _ in range(node.most - node.least):
            forks.append(self._next_place())
            self.add(node.part, depth)
        self._jumps |= {fork: [fork + 1, self.end] for fork in forks}


@lru_cache(maxsize=MAX_CACHED_PROGRAMS)
def _program_of(text: str) -> _Program:
    """Return the compiled program, which is immutable from then on: several threads may share it."""
    program = _Program()
    program.add(parse(text))
    return program


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


@lru_cache(maxsize=MAX_CACHED_TESTS)
def _test(ranges: Ranges) -> Callable[[str], bool]:
    """Return a function that tells whether a character is in the ranges."""
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
    """Return the compiled expression. Raises `RegexError` if RE2/J rejects it or it is too large."""
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
    """Call `on_done(match())`, where `match` applies all `patterns` to all `texts`.

    If that may block the event loop for more than about 10 ms, `run_beside(match, on_done)` does it instead.
    """
    if sum(pattern.size for pattern in patterns) * sum(map(len, texts)) > QUICK_STEPS:
        run_beside(match, on_done)
    else:
        on_done(match())
