"""Sets of characters as sorted ranges, with RE2/J's tables of Unicode categories, scripts and cases.

Mirrors `CharClass`, `CharGroup` and `Unicode` of RE2/J 1.8. The tables are in `characters.tsv`, written by
`python -m tools.update_regex_tables`; a line is parsed when an expression uses its class.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cache, lru_cache
from pkgutil import get_data
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

Ranges = tuple[tuple[int, int], ...]
"""First and last code point of each range, sorted, neither overlapping nor adjacent."""

MAX_CODE: Final = 0x10FFFF
MAX_FOLD: Final = 0x1044F
"""Last character that case-insensitive ranges expand; later ones ignore case as literals only."""
NEW_LINE: Final = ord("\n")
ANY: Final[Ranges] = ((0, MAX_CODE),)


def ranges_of(*parts: str) -> Ranges:
    """Return the set of these single characters such as `_` and ranges such as `a-z`."""
    return union((ord(part[0]), ord(part[-1])) for part in parts)


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the set of all characters in the ranges, which may be in any order and overlap."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def negated(ranges: Ranges) -> Ranges:
    """Return the complement of the set."""
    starts = [0, *(last + 1 for _, last in ranges)]
    ends = [*(first - 1 for first, _ in ranges), MAX_CODE]
    return tuple((start, end) for start, end in zip(starts, ends, strict=True) if start <= end)


def intersection(one: Ranges, other: Ranges) -> Ranges:
    """Return the set of characters in both sets."""
    return negated(union((*negated(one), *negated(other))))


def cases(code: int) -> tuple[int, ...]:
    """Return the character and its variants in other cases."""
    return _tables().orbits.get(code, (code,))


@lru_cache(maxsize=64)
def folded(ranges: Ranges) -> Ranges:
    """Return the set with all case variants, as RE2/J adds them to a class."""
    tables = _tables()
    more = list(ranges)
    for first, last in ranges:
        start, end = bisect_left(tables.cased, first), bisect_right(tables.cased, min(last, MAX_FOLD))
        more += ((other, other) for code in tables.cased[start:end] for other in tables.orbits[code])
    return union(more)


def names() -> Iterable[str]:
    """Return the names of all Unicode categories and scripts."""
    return _tables().lines


def count_with_cases(first: int, last: int) -> int:
    """Return the number of characters in the range that have case variants."""
    cased = _tables().cased
    return bisect_right(cased, min(last, MAX_FOLD)) - bisect_left(cased, first)


@lru_cache(maxsize=64)
def named(name: str, *, ignores_case: bool = False, is_negated: bool = False) -> Ranges | None:
    """Return the category or script with that name, or its complement; None if there is none."""
    if name == "Any":
        return () if is_negated else ANY
    line = _tables().lines.get(name)
    if line is None:
        return None
    own = _parse_ranges(line[0])
    if len(name) == 1:
        own = [
            each for part, (text, _) in _tables().lines.items() if _is_part(part, name) for each in _parse_ranges(text)
        ]
    other_cases = _parse_ranges(line[1])
    ranges = union(own + other_cases) if ignores_case else union(own)
    return negated(ranges) if is_negated else ranges


def _is_part(name: str, category: str) -> bool:
    """Whether the class is a part of a category of one letter, as Lu is of L."""
    return len(name) == len("Lu") and name.startswith(category)


def _parse_ranges(text: str) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for part in filter(None, text.split(",")):
        bounds, _, stride = part.partition("/")
        first, _, last = bounds.partition("-")
        start, end = int(first, 16), int(last or first, 16)
        ranges += ((code, code) for code in range(start, end + 1, int(stride))) if stride else [(start, end)]
    return ranges


class _Tables:
    """The content of `characters.tsv`."""

    def __init__(self) -> None:
        self.lines: dict[str, tuple[str, str]] = {}
        """Ranges of each class, and those of its case variants, as text; L has those of Ll, Lm, Lo, Lt and Lu."""
        self.orbits: dict[int, tuple[int, ...]] = {}
        """All case variants of a character, by each of them."""
        # Uses the package loader, because pyfakefs may have replaced `open` and Path.
        lines = get_data(__name__, "characters.tsv")
        assert lines is not None
        for line in lines.decode("ascii").splitlines():
            kind, *fields = line.split("\t")
            if kind == "class":
                self.lines[fields[0]] = (fields[1], fields[2])
                continue
            for orbit in fields[0].split(","):
                codes = tuple(int(code, 16) for code in orbit.split("-"))
                self.orbits |= dict.fromkeys(codes, codes)
        self.cased = sorted(self.orbits)


@cache
def _tables() -> _Tables:
    return _Tables()


DIGIT: Final = ranges_of("0-9")
LOWER: Final = ranges_of("a-z")
UPPER: Final = ranges_of("A-Z")
ALPHA: Final = union(LOWER + UPPER)
ALNUM: Final = union(ALPHA + DIGIT)
WORD: Final = union((*ALNUM, *ranges_of("_")))
PUNCT: Final = ranges_of("!-/", ":-@", "[-`", "{-~")
BLANK: Final = ranges_of("\t", " ")
GRAPH: Final = ranges_of("!-~")
PRINT: Final = ranges_of(" -~")
CONTROL: Final = ranges_of("\0-\x1f", "\x7f")
XDIGIT: Final = union((*DIGIT, *ranges_of("a-f", "A-F")))
ASCII: Final = ranges_of("\0-\x7f")
WHITE_SPACE: Final = ranges_of("\t-\r", " ")
"""White space with the vertical tab, which RE2/J's `\\s` leaves out."""
