r"""The syntax of RE2/J 1.8, which Kafka uses for clients' expressions.

Mirrors `Parser` of RE2/J with the flags of `Pattern.compile`: invalid expressions are rejected with its messages, and
valid ones mean the same. The syntax differs from Python's and Java's in many places: for example, `\pN`, `\x{31}`,
`\Q…\E`, `\z` and `[[:digit:]]` are valid, `{,3}` is literal text, flags may stand anywhere in a group, and
look-around, back references and possessive repetitions are rejected.

Captures are dropped: Kafka only checks whether a whole text matches. Deliberate difference: classes with more than
`MAX_RANGES` ranges are rejected; RE2/J is limited only by memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker_sim.regex import characters
from broker_sim.regex.characters import NEW_LINE, Ranges

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_COUNT: Final = 1_000
MAX_COUNT_DIGITS: Final = 8
MAX_RANGES: Final = 20_000
"""Maximum number of ranges and case variants in all classes of an expression, about 50 ms."""

BAD_RANGE: Final = "invalid character class range"
BAD_ESCAPE: Final = "invalid escape sequence"
BAD_NAME: Final = "invalid named capture"
BAD_PERL: Final = "invalid or unsupported Perl syntax"
BAD_REPEAT: Final = "invalid nested repetition operator"
BAD_COUNT: Final = "invalid repeat count"
NO_BRACKET: Final = "missing closing ]"
NO_PARENTHESIS: Final = "missing closing )"
NO_ARGUMENT: Final = "missing argument to repetition operator"
TRAILING_BACKSLASH: Final = "trailing backslash at end of expression"
DUPLICATE_NAME: Final = "duplicate capture group name"
INTERNAL: Final = "regexp/syntax: internal error"
TOO_LARGE: Final = "expression is too large"

OCTAL: Final = frozenset("01234567")
DIGITS: Final = frozenset("0123456789")
HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
NAME: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
PERL_CLASSES: Final = {
    "d": characters.DIGIT,
    "s": characters.ranges_of("\t", "\n", "\f", "\r", " "),
    "w": characters.WORD,
}
POSIX_CLASSES: Final = {
    "alnum": characters.ALNUM,
    "alpha": characters.ALPHA,
    "ascii": characters.ASCII,
    "blank": characters.BLANK,
    "cntrl": characters.CONTROL,
    "digit": characters.DIGIT,
    "graph": characters.GRAPH,
    "lower": characters.LOWER,
    "print": characters.PRINT,
    "punct": characters.PUNCT,
    "space": characters.WHITE_SPACE,
    "upper": characters.UPPER,
    "word": characters.WORD,
    "xdigit": characters.XDIGIT,
}


class RegexError(ValueError):
    """The expression is invalid (the text is RE2/J's message) or too large."""


@dataclass(frozen=True, slots=True)
class Characters:
    """Matches one character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Edge:
    """Matches a position by the characters before and after it, which are empty at the ends of the text."""

    holds: Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Sequence:
    """Matches its parts one after another; without parts, the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Matches any one of its branches."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Matches `least` to `most` repetitions of a part; `most` is None if unlimited."""

    part: Node
    least: int
    most: int | None


Node = Characters | Edge | Sequence | Alternatives | Repeat


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags set by `(?ims)`. `U` only selects among several matches, so it has no effect here."""

    ignores_case: bool = False
    by_line: bool = False
    dot_is_any: bool = False


def _is_word(character: str) -> bool:
    return character != "" and character in NAME


BEGIN_TEXT: Final = Edge(lambda before, _: before == "")
END_TEXT: Final = Edge(lambda _, after: after == "")
BEGIN_LINE: Final = Edge(lambda before, _: before in ("", "\n"))
END_LINE: Final = Edge(lambda _, after: after in ("", "\n"))
BOUNDARY: Final = Edge(lambda before, after: _is_word(before) != _is_word(after))
NO_BOUNDARY: Final = Edge(lambda before, after: _is_word(before) == _is_word(after))
ANY: Final = Characters(characters.ANY)
ANY_IN_LINE: Final = Characters(characters.negated(((NEW_LINE, NEW_LINE),)))
EDGES: Final = {"A": BEGIN_TEXT, "b": BOUNDARY, "B": NO_BOUNDARY, "z": END_TEXT}


class _Group:
    """An open group: its complete branches, and the parts of the current one."""

    def __init__(self, flags: Flags) -> None:
        self.flags = flags
        """Flags that apply after the group."""
        self.branches: list[Node] = []
        self.parts: list[Node] = []

    def end_branch(self) -> None:
        self.branches.append(self.parts[0] if len(self.parts) == 1 else Sequence(tuple(self.parts)))
        self.parts = []

    def node(self) -> Node:
        self.end_branch()
        return self.branches[0] if len(self.branches) == 1 else Alternatives(tuple(self.branches))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._flags = Flags()
        self._groups = [_Group(self._flags)]
        self._names: set[str] = set()
        self._ranges = 0
        self._after_repeat = False
        self._actions = {
            "(": self._open,
            ")": self._close,
            "|": self._next_branch,
            "[": lambda: self._add(Characters(self._class())),
            "\\": self._escape,
            **dict.fromkeys("^$.", self._anchor_or_any),
        }
        """Actions of characters that are neither literals nor repetitions."""

    def parse(self) -> Node:
        while self._has_more():
            self._after_repeat = self._element()
        if len(self._groups) > 1:
            raise RegexError(NO_PARENTHESIS)
        return self._groups[0].node()

    # The text

    def _has_more(self) -> bool:
        return self._place < len(self._text)

    def _at(self, start: str) -> bool:
        return self._text.startswith(start, self._place)

    def _take(self) -> str:
        self._place += 1
        return self._text[self._place - 1]

    # One element; returns whether it is a repetition

    def _element(self) -> bool:
        character = self._take()
        if character in "*+?":
            self._repeat(1 if character == "+" else 0, 1 if character == "?" else None)
            return True
        if character == "{":
            return self._counted_repeat()
        action = self._actions.get(character)
        if action is None:
            self._literal(ord(character))
        else:
            action()
        return False

    def _anchor_or_any(self) -> None:
        by_line, character = self._flags.by_line, self._text[self._place - 1]
        if character == "^":
            self._add(BEGIN_LINE if by_line else BEGIN_TEXT)
        elif character == "$":
            self._add(END_LINE if by_line else END_TEXT)
        else:
            self._add(ANY if self._flags.dot_is_any else ANY_IN_LINE)

    def _add(self, node: Node) -> None:
        self._groups[-1].parts.append(node)

    def _literal(self, code: int) -> None:
        codes = characters.cases(code) if self._flags.ignores_case else (code,)
        self._add(Characters(characters.union((one, one) for one in codes)))

    # Repeats

    def _repeat(self, least: int, most: int | None) -> None:
        if self._at("?"):
            self._place += 1
        if self._after_repeat:
            raise RegexError(BAD_REPEAT)
        group = self._groups[-1]
        if not group.parts:
            raise RegexError(NO_ARGUMENT)
        self._add(Repeat(group.parts.pop(), least, most))

    def _counted_repeat(self) -> bool:
        behind = self._place
        counts = self._counts()
        if counts is None:
            self._place = behind
            self._literal(ord("{"))
            return True  # as in RE2/J, no repetition may follow
        least, most = counts
        if least > MAX_COUNT or (most is not None and not least <= most <= MAX_COUNT):
            raise RegexError(BAD_COUNT)
        self._repeat(least, most)
        return True

    def _counts(self) -> tuple[int, int | None] | None:
        """Return the counts in braces; None if the braces are literal text."""
        least = self._count()
        if least is None:
            return None
        most: int | None = least
        if self._at(","):
            self._place += 1
            most = None
            if not self._at("}"):
                most = self._count()
                if most is None:
                    return None
        if not self._at("}"):
            return None
        self._place += 1
        return least, most

    def _count(self) -> int | None:
        start = self._place
        while self._has_more() and self._text[self._place] in DIGITS:
            self._place += 1
        number = self._text[start : self._place]
        if not number or (len(number) > 1 and number[0] == "0"):
            return None
        return int(number) if len(number) <= MAX_COUNT_DIGITS else MAX_COUNT + 1

    # Groups

    def _open(self) -> None:
        if not self._at("?"):
            self._groups.append(_Group(self._flags))
        elif self._at("?P<") or self._at("?<"):
            self._open_named()
        else:
            self._place += 1
            self._read_flags()

    def _open_named(self) -> None:
        start = self._text.index("<", self._place) + 1
        end = self._text.find(">", start)
        name = self._text[start:end]
        if end < 0 or not name or not NAME.issuperset(name):
            raise RegexError(BAD_NAME)
        if name in self._names:
            raise RegexError(DUPLICATE_NAME)
        self._names.add(name)
        self._place = end + 1
        self._groups.append(_Group(self._flags))

    def _read_flags(self) -> None:
        letters = {"i": self._flags.ignores_case, "m": self._flags.by_line, "s": self._flags.dot_is_any}
        is_set, has_letter = True, False
        while self._has_more():
            character = self._take()
            if character in "imsU":
                letters[character] = is_set
                has_letter = True
            elif character == "-" and is_set:
                is_set, has_letter = False, False
            elif character in ":)" and (is_set or has_letter):
                if character == ":":
                    self._groups.append(_Group(self._flags))
                self._flags = Flags(letters["i"], letters["m"], letters["s"])
                return
            else:
                break
        raise RegexError(BAD_PERL)

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise RegexError(INTERNAL)
        group = self._groups.pop()
        self._flags = group.flags
        self._add(group.node())

    def _next_branch(self) -> None:
        self._groups[-1].end_branch()

    # Escapes

    def _escape(self) -> None:
        if not self._has_more():
            raise RegexError(TRAILING_BACKSLASH)
        character = self._text[self._place]
        if character in EDGES:
            self._place += 1
            self._add(EDGES[character])
        elif character == "Q":
            self._place += 1
            end = self._text.find("\\E", self._place)
            quoted = self._text[self._place :] if end < 0 else self._text[self._place : end]
            for quoted_character in quoted:
                self._literal(ord(quoted_character))
            self._place += len(quoted) + 2
        else:
            ranges = self._escaped_class()
            if ranges is None:
                self._literal(self._escaped_code())
            else:
                self._count_ranges(len(ranges))
                self._add(Characters(ranges))

    def _escaped_class(self) -> Ranges | None:
        """Return the set of an escape, None if it is a single character; the position is after the backslash."""
        character = self._text[self._place]
        if character in "pP":
            self._place += 1
            return self._unicode_class(is_negated=character == "P")
        ranges = PERL_CLASSES.get(character.lower())
        if ranges is None:
            return None
        self._place += 1
        return self._group(ranges, is_negated=character.isupper())

    def _group(self, ranges: Ranges, *, is_negated: bool) -> Ranges:
        if self._flags.ignores_case:
            ranges = characters.folded(ranges)
        return characters.negated(ranges) if is_negated else ranges

    def _unicode_class(self, *, is_negated: bool) -> Ranges:
        name = self._take() if self._has_more() else ""
        if name == "{":
            end = self._text.find("}", self._place)
            if end < 0:
                raise RegexError(BAD_RANGE)
            name = self._text[self._place : end]
            self._place = end + 1
        if name.startswith("^"):
            is_negated, name = not is_negated, name[1:]
        ranges = characters.named(name, ignores_case=self._flags.ignores_case, is_negated=is_negated)
        if ranges is None:
            raise RegexError(BAD_RANGE)
        return ranges

    def _escaped_code(self) -> int:
        """Return the character of an escape; the position is after the backslash."""
        if not self._has_more():
            raise RegexError(TRAILING_BACKSLASH)
        character = self._take()
        if character not in NAME or character == "_":
            return ord(character)
        if character in ESCAPES:
            return ESCAPES[character]
        if character == "x":
            return self._hexadecimal()
        next_is_octal = self._has_more() and self._text[self._place] in OCTAL
        if character == "0" or (character in OCTAL and next_is_octal):
            start = self._place - 1
            while self._has_more() and self._place < start + 3 and self._text[self._place] in OCTAL:
                self._place += 1
            return int(self._text[start : self._place], 8)
        raise RegexError(BAD_ESCAPE)

    def _hexadecimal(self) -> int:
        digits = self._text[self._place : self._place + 2]
        self._place += 2
        if digits.startswith("{"):
            start = self._place - 1
            end = self._text.find("}", start)
            digits = self._text[start:end] if end >= 0 else ""
            self._place = end + 1
        elif len(digits) != 2:
            raise RegexError(BAD_ESCAPE)
        if not digits or not HEXADECIMAL.issuperset(digits) or int(digits, 16) > characters.MAX_CODE:
            raise RegexError(BAD_ESCAPE)
        return int(digits, 16)

    # Classes

    def _class(self) -> Ranges:
        is_negated = self._at("^")
        self._place += is_negated
        ranges: list[tuple[int, int]] = []
        first = self._place
        while not self._at("]") or self._place == first:
            if not self._has_more():
                raise RegexError(NO_BRACKET)
            item = self._class_item()
            self._count_ranges(len(item))
            ranges += item
        self._place += 1
        joined = characters.union(ranges)
        return characters.negated(joined) if is_negated else joined

    def _count_ranges(self, count: int) -> None:
        self._ranges += count
        if self._ranges > MAX_RANGES:
            raise RegexError(TOO_LARGE)

    def _class_item(self) -> Ranges:
        if self._at("[:"):
            end = self._text.find(":]", self._place)
            if end >= 0:
                return self._posix_class(end)
        if self._at("\\") and self._place + 1 < len(self._text):
            self._place += 1
            ranges = self._escaped_class()
            if ranges is not None:
                return ranges
            self._place -= 1
        low = high = self._class_character()
        if self._at("-") and not self._text.startswith("]", self._place + 1):
            self._place += 1
            high = self._class_character()
            if high < low:
                raise RegexError(BAD_RANGE)
        if not self._flags.ignores_case:
            return ((low, high),)
        self._count_ranges(characters.count_with_cases(low, high))
        return characters.folded(((low, high),))

    def _posix_class(self, end: int) -> Ranges:
        name = self._text[self._place + 2 : end]
        self._place = end + 2
        ranges = POSIX_CLASSES.get(name.removeprefix("^"))
        if ranges is None:
            raise RegexError(BAD_RANGE)
        return self._group(ranges, is_negated=name.startswith("^"))

    def _class_character(self) -> int:
        if not self._has_more():
            raise RegexError(NO_BRACKET)
        character = self._take()
        return self._escaped_code() if character == "\\" else ord(character)


def parse(text: str) -> Node:
    """Return the syntax tree of the expression. Raises RegexError if it is invalid or too large."""
    return _Parser(text).parse()
