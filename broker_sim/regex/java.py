r"""The syntax of `java.util.regex`, which Kafka uses for expressions in configurations.

Mirrors `Pattern.compile` of Java 17 without flags: an expression is translated to Python's `re`, which backtracks
like Java, so that captures are the same. Character classes, anchors and flags are spelled out, and invalid
expressions are rejected with Java's messages.

Deliberate difference: some valid constructs are rejected by name: the flags for comments and Unicode classes (`(?x)`,
`(?U)`), blocks, binary properties and `\p{java…}`, `\G`, `\X`, `\b{g}`, look-behind of variable width, and
references into an open group.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, NoReturn

from broker_sim.regex import characters
from broker_sim.regex.characters import Ranges, intersection, negated, ranges_of, union

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_COUNT: Final = 0x7FFFFFFF
DIGITS: Final = frozenset("0123456789")
HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
LETTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
NO_MATCH: Final = "(?!)"

LINE_ENDS: Final = ranges_of("\n", "\r", "\x85", "\u2028-\u2029")
HORIZONTAL: Final = ranges_of("\t", " ", "\xa0", "\u1680", "\u180e", "\u2000-\u200a", "\u202f", "\u205f", "\u3000")
VERTICAL: Final = ranges_of("\n-\r", "\x85", "\u2028-\u2029")
ESCAPED_CLASSES: Final = {
    "d": characters.DIGIT,
    "h": HORIZONTAL,
    "s": characters.WHITE_SPACE,
    "v": VERTICAL,
    "w": characters.WORD,
}
ESCAPED_CODES: Final = {"a": 7, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9}

LINE_END: Final = r"(?:\r\n|[\n-\r\x85\u2028\u2029])"
LAST_LINE_END: Final = r"(?:(?=\r\n\Z)|(?=[\r\x85\u2028\u2029]?\Z)|(?<!\r)(?=\n\Z))"
END_OF_LINE: Final = r"(?:(?=\r\n|[\r\x85\u2028\u2029]|\Z)|(?<!\r)(?=\n))"
BEGIN_OF_LINE: Final = r"(?:(?!\Z)(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n)))"
NO_BOUNDARY: Final = r"(?:(?<!\w)(?!\w)|(?<=\w)(?=\w))"
"""Python's `\\B` does not match the empty text before 3.14."""
LAST_UNIX_END: Final = r"(?=\n?\Z)"
END_OF_UNIX_LINE: Final = r"(?=\n|\Z)"
BEGIN_OF_UNIX_LINE: Final = r"(?:(?!\Z)(?:\A|(?<=\n)))"

POSIX: Final = {
    "ASCII": characters.ASCII,
    "Alnum": characters.ALNUM,
    "Alpha": characters.ALPHA,
    "Blank": characters.BLANK,
    "Cntrl": characters.CONTROL,
    "Digit": characters.DIGIT,
    "Graph": characters.GRAPH,
    "Lower": characters.LOWER,
    "Print": characters.PRINT,
    "Punct": characters.PUNCT,
    "Space": characters.WHITE_SPACE,
    "Upper": characters.UPPER,
    "XDigit": characters.XDIGIT,
    "all": characters.ANY,
    "L1": ranges_of("\0-\xff"),
}
CATEGORY_LENGTHS: Final = (1, 2)
"""Lengths of category names; script names are longer."""
# fmt: off
BINARY_PROPERTIES: Final = frozenset(
    {
        "ALPHABETIC", "LETTER", "IDEOGRAPHIC", "LOWERCASE", "UPPERCASE", "TITLECASE", "WHITE_SPACE",
        "WHITESPACE", "CONTROL", "PUNCTUATION", "HEX_DIGIT", "HEXDIGIT", "ASSIGNED",
        "NONCHARACTER_CODE_POINT", "NONCHARACTERCODEPOINT", "DIGIT", "ALNUM", "BLANK", "GRAPH", "PRINT",
        "WORD", "JOIN_CONTROL", "JOINCONTROL", "EMOJI",
    }
)
# fmt: on
"""Binary properties that Java accepts after `Is`, in upper case."""
CASED: Final = {"Lower": characters.ALPHA, "Upper": characters.ALPHA}
"""Case-insensitive variants of POSIX classes."""
CASED_CATEGORIES: Final = frozenset({"Lu", "Ll", "Lt"})


class JavaRegexError(ValueError):
    """The expression is invalid (the text is Java's message) or not supported by broker-sim."""


class _Flags:
    """The flags set by `(?idmsu)`."""

    def __init__(self, letters: frozenset[str] = frozenset()) -> None:
        self.letters = letters

    @property
    def ignores_case(self) -> bool:
        return "i" in self.letters

    @property
    def unicode_case(self) -> bool:
        return "u" in self.letters


def _unsupported(construct: str) -> NoReturn:
    raise JavaRegexError(f"{construct} is not supported by broker-sim; write the expression without it")


def _unquoted(text: str) -> str:
    r"""Return the expression with the characters between `\Q` and `\E` escaped one by one."""
    parts = []
    place = 0
    while place < len(text):
        pair = text[place : place + 2]
        if pair == "\\Q":
            end = text.find("\\E", place + 2)
            quoted = text[place + 2 :] if end < 0 else text[place + 2 : end]
            parts += [f"\\x{{{ord(character):x}}}" for character in quoted]
            place += 4 + len(quoted)
        else:
            size = 2 if pair.startswith("\\") else 1
            parts.append(text[place : place + size])
            place += size
    return "".join(parts)


def _python_class(ranges: Ranges) -> str:
    """Return the set in the syntax of Python's `re`."""
    if not ranges:
        return NO_MATCH
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    parts = (f"\\U{first:08x}" + (f"-\\U{last:08x}" if last > first else "") for first, last in ranges)
    return f"[{''.join(parts)}]"


class _Translator:
    def __init__(self, text: str) -> None:
        self._text = _unquoted(text)
        self._place = 0
        self._flags = _Flags()
        self._group_count = 0
        self._open_groups: set[int] = set()
        self._names: dict[str, int] = {}

    def translate(self) -> str:
        translated = self._branches()
        if self._place < len(self._text):
            raise JavaRegexError("Unmatched closing ')'")
        return translated

    # The text

    def _peek(self) -> str:
        return self._text[self._place : self._place + 1]

    def _take(self) -> str:
        self._place += 1
        return self._text[self._place - 1 : self._place]

    def _at(self, start: str) -> bool:
        return self._text.startswith(start, self._place)

    def _skip(self, start: str) -> bool:
        """Consume this text if it comes next; return whether it did."""
        is_next = self._at(start)
        if is_next:
            self._place += len(start)
        return is_next

    # Branches, sequences and repeats

    def _branches(self) -> str:
        branches = [self._sequence()]
        while self._skip("|"):
            branches.append(self._sequence())
        return "|".join(branches)

    def _sequence(self) -> str:
        parts = []
        while (character := self._peek()) and character not in "|)":
            if character in "*+?":
                raise JavaRegexError(f"Dangling meta character '{character}'")
            element = self._element()
            if element is not None:
                parts.append(self._repeated(element))
        return "".join(parts)

    def _element(self) -> str | None:
        """Return the next element translated; None if it only sets flags."""
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            self._place -= 1
            return _python_class(self._class(consumes=True))
        if character == "\\":
            return self._escape()
        if character in "^$.":
            return self._anchor_or_any(character)
        if character == "{":
            self._place -= 1
            return ""  # Java then repeats the empty expression
        return _python_class(self._with_cases(ord(character)))

    def _anchor_or_any(self, character: str) -> str:
        flags = self._flags.letters
        if character == ".":
            if "s" in flags:
                return _python_class(characters.ANY)
            return _python_class(negated(ranges_of("\n") if "d" in flags else LINE_ENDS))
        if "m" not in flags:
            return r"\A" if character == "^" else self._last_line_end()
        if character == "^":
            return BEGIN_OF_UNIX_LINE if "d" in flags else BEGIN_OF_LINE
        return END_OF_UNIX_LINE if "d" in flags else END_OF_LINE

    def _last_line_end(self) -> str:
        return LAST_UNIX_END if "d" in self._flags.letters else LAST_LINE_END

    def _repeated(self, element: str) -> str:
        character = self._peek()
        if not character or character not in "*+?{":
            return element or "(?:)"
        counts = self._counts() if character == "{" else self._take()
        mode = self._take() if self._peek() and self._peek() in "?+" else ""
        return f"(?:{element}){counts}{mode}"

    def _counts(self) -> str:
        self._place += 1
        least = self._count()
        if least is None:
            raise JavaRegexError("Illegal repetition")
        most: int | None = least
        if self._skip(","):
            most = None if self._at("}") else self._count() or 0
        if not self._skip("}"):
            raise JavaRegexError("Unclosed counted closure")
        if max(least, most or 0) > MAX_COUNT or (most is not None and most < least):
            raise JavaRegexError("Illegal repetition range")
        return f"{{{least},{'' if most is None else most}}}"

    def _count(self) -> int | None:
        start = self._place
        while self._peek() and self._peek() in DIGITS:
            self._place += 1
        number = self._text[start : self._place]
        return int(number[:20]) if number else None

    # Groups

    def _group(self) -> str | None:
        flags = self._flags
        if not self._skip("?"):
            begin, number = "(", self._open_group()
        elif self._at("<") and not self._at("<=") and not self._at("<!"):
            self._place += 1
            number = self._open_named_group()
            begin = f"(?P<{next(reversed(self._names))}>"
        else:
            number = 0
            start = next((prefix for prefix in (":", "=", "!", ">", "<=", "<!") if self._skip(prefix)), None)
            if start is None:
                if self._read_flags():
                    return None
                start = ":"
            begin = f"(?{start}"
        inner = self._branches()
        if not self._skip(")"):
            raise JavaRegexError("Unclosed group")
        self._open_groups.discard(number)
        self._flags = flags
        return f"{begin}{inner})"

    def _open_group(self) -> int:
        self._group_count += 1
        self._open_groups.add(self._group_count)
        return self._group_count

    def _open_named_group(self) -> int:
        name = self._group_name()
        if name in self._names:
            raise JavaRegexError(f"Named capturing group <{name}> is already defined")
        self._names[name] = self._open_group()
        return self._names[name]

    def _group_name(self) -> str:
        start = self._place
        if not self._peek() or self._peek() not in LETTERS:
            raise JavaRegexError("capturing group name does not start with a Latin letter")
        while self._peek() and self._peek() in LETTERS | DIGITS:
            self._place += 1
        name = self._text[start : self._place]
        if not self._skip(">"):
            raise JavaRegexError("named capturing group is missing trailing '>'")
        return name

    def _read_flags(self) -> bool:
        """Read flags; return whether they apply to the rest of the enclosing group, not to a group of their own."""
        letters, is_set = set(self._flags.letters), True
        if self._peek() in {"$", "@"}:
            raise JavaRegexError("Unknown group type")
        while (character := self._take()) and character in "imsducxU-":
            if character in "xU":
                _unsupported(f"(?{character})")
            if character == "-":
                if not is_set:
                    break
                is_set = False
            elif is_set:
                letters.add(character)
            else:
                letters.discard(character)
        if not character or character not in ":)":
            raise JavaRegexError("Unknown inline modifier")
        self._flags = _Flags(frozenset(letters))
        return character == ")"

    # Escapes outside of classes

    def _escape(self) -> str:
        character = self._take()
        anchors = {"A": r"\A", "Z": self._last_line_end(), "z": r"\Z", "B": NO_BOUNDARY, "R": LINE_END}
        if character in anchors:
            return anchors[character]
        if character == "b":
            if self._at("{"):
                _unsupported(r"\b{g}")
            return r"\b"
        if character and character in "GX":
            _unsupported(f"\\{character}")
        if character == "k":
            return self._named_reference()
        if character and character in "123456789":
            return self._reference(int(character))
        self._place -= len(character)
        item = self._escaped_item()
        return _python_class(item if isinstance(item, tuple) else self._with_cases(item))

    def _named_reference(self) -> str:
        if not self._skip("<"):
            raise JavaRegexError("\\k is not followed by '<' for named capturing group")
        name = self._group_name()
        if name not in self._names:
            raise JavaRegexError(f"named capturing group <{name}> does not exist")
        return self._written_reference(self._names[name])

    def _reference(self, number: int) -> str:
        while self._peek() and self._peek() in DIGITS and number * 10 + int(self._peek()) <= self._group_count:
            number = number * 10 + int(self._take())
        return self._written_reference(number)

    def _written_reference(self, number: int) -> str:
        if number > self._group_count:
            return NO_MATCH
        if number in self._open_groups:
            _unsupported("a reference into an open group")
        return f"(?i:\\{number})" if self._flags.ignores_case else f"(?:\\{number})"

    # Escapes anywhere

    def _escaped_item(self, *, is_range: bool = False) -> Ranges | int:
        """Return the set or character of an escape; the position is after the backslash."""
        character = self._take()
        if not character:
            raise JavaRegexError("Unexpected internal error")
        if character in "pP":
            return self._family(is_negated=character == "P")
        if character == "v" and is_range:
            return 0x0B
        if character.lower() in ESCAPED_CLASSES:
            ranges = ESCAPED_CLASSES[character.lower()]
            return ranges if character.islower() else negated(ranges)
        if character in ESCAPED_CODES:
            return ESCAPED_CODES[character]
        readers: dict[str, Callable[[], int]] = {
            "0": self._octal,
            "x": self._hexadecimal,
            "u": self._utf_16,
            "c": self._control,
            "N": self._named_character,
        }
        if character in readers:
            return readers[character]()
        if character in LETTERS or character in DIGITS:
            raise JavaRegexError("Illegal/unsupported escape sequence")
        return ord(character)

    def _octal(self) -> int:
        start = self._place
        while self._peek() and self._peek() in "01234567" and self._place < start + 3:
            self._place += 1
        if self._place == start + 3 and self._text[start] > "3":
            self._place -= 1
        if self._place == start:
            raise JavaRegexError("Illegal octal escape sequence")
        return int(self._text[start : self._place], 8)

    def _hexadecimal(self) -> int:
        digits = self._text[self._place : self._place + 2]
        if len(digits) == 2 and HEXADECIMAL.issuperset(digits):
            self._place += 2
            return int(digits, 16)
        if not self._at("{") or digits[1:] not in HEXADECIMAL:
            raise JavaRegexError("Illegal hexadecimal escape sequence")
        start = self._place = self._place + 1
        while self._peek() and self._peek() in HEXADECIMAL:
            self._place += 1
            if int(self._text[start : self._place], 16) > characters.MAX_CODE:
                raise JavaRegexError("Hexadecimal codepoint is too big")
        code = int(self._text[start : self._place], 16)
        if not self._skip("}"):
            raise JavaRegexError("Unclosed hexadecimal escape sequence")
        return code

    def _utf_16(self) -> int:
        units = [self._unit()]
        if 0xD800 <= units[0] < 0xDC00 and self._skip("\\u"):
            behind = self._place
            units.append(self._unit())
            if not 0xDC00 <= units[1] < 0xE000:
                self._place = behind - 2
                del units[1]
        if len(units) == 1:
            return units[0]
        return 0x10000 + ((units[0] - 0xD800) << 10) + units[1] - 0xDC00

    def _unit(self) -> int:
        digits = self._text[self._place : self._place + 4]
        if len(digits) < 4 or not HEXADECIMAL.issuperset(digits):
            raise JavaRegexError("Illegal Unicode escape sequence")
        self._place += 4
        return int(digits, 16)

    def _control(self) -> int:
        character = self._take()
        if not character:
            raise JavaRegexError("Illegal control escape sequence")
        return ord(character) ^ 64

    def _named_character(self) -> int:
        end = self._text.find("}", self._place)
        if not self._at("{") or end < 0:
            raise JavaRegexError("Illegal character name escape sequence")
        name = self._text[self._place + 1 : end]
        self._place = end + 1
        try:
            return ord(unicodedata.lookup(name))
        except KeyError:
            raise JavaRegexError(f"Unknown character name [{name}]") from None

    def _family(self, *, is_negated: bool) -> Ranges:
        name = self._take()
        if name == "{":
            end = self._text.find("}", self._place)
            if end < 0:
                raise JavaRegexError("Unclosed character family")
            name = self._text[self._place : end]
            self._place = end + 1
            if not name:
                raise JavaRegexError("Empty character family")
        ranges = self._family_named(name)
        if ranges is None:
            raise JavaRegexError(f"Unknown character property name {{{name}}}")
        return negated(ranges) if is_negated else ranges

    def _family_named(self, name: str) -> Ranges | None:
        key, is_property, value = name.partition("=")
        if is_property and key.lower() in {"sc", "script"}:
            return _script(value)
        if is_property and key.lower() in {"gc", "general_category"}:
            return self._category(value)
        if is_property or name.startswith(("In", "java")):
            _unsupported(f"\\p{{{name}}}")
        if name.startswith("Is") and name[2:].upper() in BINARY_PROPERTIES:
            _unsupported(f"\\p{{{name}}}")
        if name.startswith("Is"):
            return self._category(name[2:]) or _script(name[2:])
        return self._category(name)

    def _category(self, name: str) -> Ranges | None:
        ignores_case = self._flags.ignores_case
        if name in POSIX:
            return CASED.get(name, POSIX[name]) if ignores_case else POSIX[name]
        members = {"LC": ("Lu", "Ll", "Lt"), "LD": ("L", "Nd")}.get(name, (name,))
        if ignores_case and name in CASED_CATEGORIES:
            members = ("Lu", "Ll", "Lt")
        sets = [characters.named(member) for member in members if len(member) in CATEGORY_LENGTHS]
        return union(each for member in sets for each in member or ()) if any(sets) else None

    # Classes

    def _class(self, *, consumes: bool) -> Ranges:
        """Return a class; the position is at its bracket, or at its first character for an operand of `&&`."""
        if consumes:
            self._place += 1
        is_negated = consumes and self._skip("^")
        ranges: Ranges | None = None
        while True:
            if self._at("["):
                ranges = union((*(ranges or ()), *self._class(consumes=True)))
            elif self._skip("&&"):
                ranges = self._intersected(ranges)
            elif self._at("]") and ranges is not None:
                self._place += consumes
                return negated(ranges) if is_negated else ranges
            elif not self._peek():
                raise JavaRegexError("Unclosed character class")
            else:
                ranges = union((*(ranges or ()), *self._class_range()))

    def _intersected(self, left: Ranges | None) -> Ranges:
        right: Ranges | None = None
        while not self._peek() or self._peek() not in "]&":
            right = union((*(right or ()), *self._class(consumes=self._at("["))))
        if right is None and left is None:
            raise JavaRegexError("Bad class syntax")
        if left is None or right is None:
            return left or right or ()
        return intersection(left, right)

    def _class_range(self) -> Ranges:
        if self._skip("\\"):
            item = self._escaped_item(is_range=self._text.startswith("-", self._place + 1))
            if isinstance(item, tuple):
                return item
            low = item
        else:
            low = ord(self._take())
        end = self._text[self._place + 1 : self._place + 2]
        if not self._at("-") or end in {"[", "]"}:
            return self._with_cases(low)
        self._place += 1
        high: Ranges | int = self._escaped_item(is_range=True) if self._skip("\\") else self._range_end()
        if isinstance(high, tuple) or high < low:
            raise JavaRegexError("Illegal character range")
        return self._with_cases(low, high)

    def _range_end(self) -> int:
        character = self._take()
        if not character:
            raise JavaRegexError("Illegal character range")
        return ord(character)

    def _with_cases(self, low: int, high: int | None = None) -> Ranges:
        """Return a character or range with the case variants that the flags include."""
        ranges: Ranges = ((low, low if high is None else high),)
        if not self._flags.ignores_case:
            return ranges
        if self._flags.unicode_case:
            return characters.folded(ranges)
        shift = ord("a") - ord("A")
        lower, upper = intersection(ranges, characters.LOWER), intersection(ranges, characters.UPPER)
        return union(
            (
                *ranges,
                *((first - shift, last - shift) for first, last in lower),
                *((first + shift, last + shift) for first, last in upper),
            )
        )


def _script(name: str) -> Ranges | None:
    lower_name = name.lower()
    scripts = (script for script in characters.names() if len(script) not in CATEGORY_LENGTHS)
    return next((characters.named(script) for script in scripts if script.lower() == lower_name), None)


def compile_java(text: str) -> re.Pattern[str]:
    """Compile the expression to Python's `re`; group numbers are Java's.

    Raises JavaRegexError if it is invalid or not supported.
    """
    translator = _Translator(text)
    try:
        return re.compile(translator.translate())
    except (re.error, OverflowError, RecursionError) as error:
        raise JavaRegexError(f"not supported by broker-sim: {error}") from error
