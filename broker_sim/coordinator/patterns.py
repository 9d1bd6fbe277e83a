r"""Regular expressions of clients, matched in time linear in the text, as RE2 does in Kafka.

Python reads the expression, and its parse tree becomes a program for a machine that is in all of its
possible places at once. So no expression makes matching exponential, and none can hold the loop. What
RE2 refuses although Python reads it is refused: look-around, back-references, atomic groups, possessive
and conditional parts, counts above 1000. Classes such as `\d` are ASCII's, `$` is the end of the text.

Deliberate differences: what Python cannot read is refused, such as `\pN` and `\z`; an expression of
more than `MAX_CHARACTERS` or `MAX_INSTRUCTIONS` is refused, where RE2 has no limit but memory.
"""

from __future__ import annotations

import re
from functools import lru_cache
from re import _parser  # type: ignore[attr-defined]
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

MAX_CHARACTERS: Final = 5_000
"""Maximum length of an expression, so that it is parsed in milliseconds."""
MAX_INSTRUCTIONS: Final = 2_000
"""Maximum number of instructions of a program; each step of a match visits each at most once."""
MAX_COUNT: Final = 1_000
MAX_KNOWN_PLACES: Final = 200_000
"""Maximum number of places in all cached steps of a pattern, about ten MB."""
QUICK_STEPS: Final = 100_000
"""Number of steps, one instruction and one character each, that take about ten milliseconds."""

MOST_LITERALS: Final = 256
"""Maximum number of cached tests of single characters."""
MOST_PROGRAMS: Final = 32
"""Maximum number of cached programs, about 20 MB: a group's expressions are parsed again when they are resolved."""

UNSUPPORTED: Final = {
    "ASSERT": "invalid or unsupported Perl syntax",
    "ASSERT_NOT": "invalid or unsupported Perl syntax",
    "ATOMIC_GROUP": "invalid or unsupported Perl syntax",
    "GROUPREF_EXISTS": "invalid or unsupported Perl syntax",
    "GROUPREF": "invalid escape sequence",
    "POSSESSIVE_REPEAT": "invalid nested repetition operator",
}
"""RE2's error texts for constructs of Python that RE2 does not have."""
WORD: Final = frozenset(ascii_letters + digits + "_")
CATEGORIES: Final = {"DIGIT": frozenset(digits), "SPACE": frozenset("\t\n\f\r "), "WORD": WORD}

IGNORECASE: Final = int(re.IGNORECASE)
MULTILINE: Final = int(re.MULTILINE)
DOTALL: Final = int(re.DOTALL)
"""Flags as plain numbers: an operation on an enum's flag takes longer than all else done for a character."""

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
        return self._program.size

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
        """The place behind the last instruction."""
        self.size = 0
        """The number of instructions, where each range or class of a set counts as one."""

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

    def add_all(self, parsed: Iterable[tuple[Any, Any]], flags: int) -> None:
        """Add the instructions of a sequence."""
        for operation, argument in parsed:
            self._add(operation.name, argument, flags)

    def _add(self, name: str, argument: Any, flags: int) -> None:
        if name in UNSUPPORTED:
            raise re.error(UNSUPPORTED[name])
        if name in {"MAX_REPEAT", "MIN_REPEAT"}:
            least, most, inner = argument
            self._add_repeat(least, most, inner, flags)
        elif name == "SUBPATTERN":
            inner, added, removed = argument[3], argument[1], argument[2]
            self.add_all(inner, (flags | added) & ~removed)
        elif name == "BRANCH":
            self._add_branch(argument[1], flags)
        elif name == "AT":
            self._edges[self._take()] = _edge(str(argument), flags)
        else:
            ranges = sum(str(item) != "LITERAL" for item, _ in argument) if name == "IN" else 0
            self._tests[self._take(max(ranges, 1))] = _test(name, argument, flags)

    def _take(self, size: int = 1) -> int:
        self.size += size
        if self.size > MAX_INSTRUCTIONS:
            raise re.error("expression is too large")
        self.end += 1
        return self.end - 1

    def _add_branch(self, branches: list[Any], flags: int) -> None:
        fork = self._take()
        self._jumps[fork], exits = [], []
        for branch in branches:
            self._jumps[fork].append(self.end)
            self.add_all(branch, flags)
            exits.append(self._take())
        self._jumps |= {one: [self.end] for one in exits}

    def _add_repeat(self, least: int, most: int, inner: Any, flags: int) -> None:
        unlimited = most is _parser.MAXREPEAT
        if least > MAX_COUNT or (not unlimited and most > MAX_COUNT):
            raise re.error("invalid repeat count")
        for _ in range(least):
            begin = self.end
            self.add_all(inner, flags)
            if self.end == begin:
                break  # what is empty is the same however often it is repeated
        if unlimited:
            fork = self._take()
            self.add_all(inner, flags)
            self._jumps[self._take()] = [fork]
            self._jumps[fork] = [fork + 1, self.end]
            return
        forks = []
        for _ in range(most - least):
            forks.append(self._take())
            self.add_all(inner, flags)
        self._jumps |= {one: [one + 1, self.end] for one in forks}


@lru_cache(maxsize=MOST_PROGRAMS)
def _program_of(text: str) -> _Program:
    """Return the program, which nobody changes any more: several threads may use it."""
    program, parsed = _Program(), _parser.parse(text)
    program.add_all(parsed, parsed.state.flags)
    return program


def _edge(name: str, flags: int) -> Callable[[str, str], bool]:
    by_line = bool(flags & MULTILINE)
    if name in {"AT_BEGINNING", "AT_BEGINNING_STRING"}:
        lines = by_line and name == "AT_BEGINNING"
        return lambda before, _: before == EDGE or (lines and before == "\n")
    if name in {"AT_END", "AT_END_STRING"}:
        lines = by_line and name == "AT_END"
        return lambda _, after: after == EDGE or (lines and after == "\n")
    at_boundary = name == "AT_BOUNDARY"
    return lambda before, after: ((before in WORD) != (after in WORD)) == at_boundary


def _test(name: str, argument: Any, flags: int) -> Callable[[str], bool]:
    if name == "LITERAL":
        return _literal(argument, ignores_case=bool(flags & IGNORECASE))
    if name == "ANY":
        return (lambda _: True) if flags & DOTALL else (lambda one: one != "\n")
    if name == "NOT_LITERAL":
        items = [("NEGATE", None), ("LITERAL", argument)]
    else:
        items = [(str(item), value) for item, value in argument]
    negated = items[0][0] == "NEGATE"
    literals = frozenset(chr(value) for item, value in items if item == "LITERAL")
    tests = [_item(item, value) for item, value in items[negated:] if item != "LITERAL"]
    if literals:
        tests.insert(0, literals.__contains__)
    if not flags & IGNORECASE:
        return lambda one: any(test(one) for test in tests) != negated
    return lambda one: any(test(case) for test in tests for case in {one, one.lower(), one.upper()}) != negated


@lru_cache(maxsize=MOST_LITERALS)
def _literal(code: int, *, ignores_case: bool) -> Callable[[str], bool]:
    character = chr(code)
    if not ignores_case:
        return character.__eq__
    return lambda one: character in {one, one.lower(), one.upper()}


def _item(name: str, value: Any) -> Callable[[str], bool]:
    if name == "RANGE":
        first, last = map(chr, value)
        return lambda one: first <= one <= last
    category = str(value).removeprefix("CATEGORY_")
    characters = CATEGORIES[category.removeprefix("NOT_")]
    is_in_category = not category.startswith("NOT_")
    return lambda one: (one in characters) == is_in_category


def compile_pattern(text: str) -> Pattern:
    """Return the expression. Raises `re.error` for one that RE2 refuses or that is too large."""
    if len(text) > MAX_CHARACTERS:
        raise re.error("expression is too large")
    try:
        return Pattern(text)
    except RecursionError as error:
        raise re.error("expression nests too deeply", text) from error
    except OverflowError as error:
        raise re.error(str(error), text) from error


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
