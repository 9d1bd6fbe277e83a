"""The principal of a client's certificate, by `ssl.principal.mapping.rules`.

Mirrors `SslPrincipalMapper`. A rule is `DEFAULT`, for the whole distinguished name, or
`RULE:PATTERN/REPLACEMENT/`, optionally followed by L or U for lower or upper case; the first rule that matches the
whole name applies. Then every match within the name is replaced, as by Java's `replaceAll`: `.*` matches a name
twice, the second time its empty end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ConfigError
from broker_sim.regex.java import JavaRegexError, compile_java

if TYPE_CHECKING:
    from collections.abc import Iterable

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_PARSER: Final = re.compile(_RULE)
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(?:,\s*|$)", re.ASCII)
_REFERENCE: Final = re.compile(r"\$([0-9]+)")
_PART: Final = re.compile(r"\\(.)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|\$([0-9]+)|([^$\\])", re.DOTALL)
_SHORT_NAMES: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
"""Attribute names that RFC 2253 abbreviates."""
_EMAIL: Final = "emailAddress"
_EMAIL_OID: Final = "1.2.840.113549.1.9.1"
_IA5_STRING: Final = 0x16
_SPECIAL: Final = re.compile(r'([,+"\\<>;=])')


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    """Expression for the distinguished name; None for the rule DEFAULT."""
    replacement: str = ""
    case: str = ""


class SslPrincipalMapper:
    """The mapping rules of one listener. Raises ConfigError for an invalid rule."""

    def __init__(self, rules: str) -> None:
        self._rules = list(_parse(rules.strip()))

    def name_of(self, distinguished: str) -> str | None:
        """Return the principal's name; None if no rule matches, or the matching rule has an invalid replacement."""
        for rule in self._rules:
            if rule.pattern is None:
                return distinguished
            if rule.pattern.fullmatch(distinguished):
                try:
                    name = _replaced(rule.pattern, rule.replacement, distinguished)
                except (LookupError, ValueError):
                    return None
                return {"L": name.lower(), "U": name.upper()}.get(rule.case, name)
        return None


def _parse(rules: str) -> Iterable[_Rule]:
    for rule in (match[1] for match in _SPLITTER.finditer(rules)):
        match = _PARSER.match(rule)
        if match is None or match.end() != len(rule):
            raise ConfigError(f"Invalid rule: `{rule}`, in ssl.principal.mapping.rules")
        default, pattern, replacement, case, _ = match.groups()
        if default:
            yield _Rule(None)
        elif pattern is not None:
            try:
                yield _Rule(compile_java(pattern), replacement, case)
            except JavaRegexError as error:
                raise ConfigError(f"Invalid rule: {rule}: {error}, in ssl.principal.mapping.rules") from None


def _replaced(pattern: re.Pattern[str], replacement: str, text: str) -> str:
    """Return the text with all matches replaced. Raises LookupError or ValueError for a replacement Java refuses."""
    parts = _parts(_with_literal_references(replacement, pattern.groups), pattern)
    replaced, behind, start = [], 0, 0
    while start <= len(text) and (match := pattern.search(text, start)):
        replaced += [text[behind : match.start()], *(p if isinstance(p, str) else match[p] or "" for p in parts)]
        behind = match.end()
        start = behind + (match.start() == behind)
    return "".join(replaced) + text[behind:]


def _with_literal_references(replacement: str, group_count: int) -> str:
    """Return the replacement with references to missing groups escaped.

    As in Kafka, positions are those of the original, so the second escape is one character too early.
    """
    if not group_count:
        return replacement
    escaped = replacement
    for match in _REFERENCE.finditer(replacement):
        number = int(match[1])
        while number > group_count and number >= 10:
            number //= 10
        if number > group_count and not match[1].startswith("0"):
            escaped = f"{escaped[: match.start()]}\\{escaped[match.start() :]}"
    return escaped


def _parts(replacement: str, pattern: re.Pattern[str]) -> list[str | int]:
    """Return literal texts and group numbers, parsed like `Matcher.appendReplacement`."""
    parts: list[str | int] = []
    place = 0
    while place < len(replacement):
        match = _PART.match(replacement, place)
        if match is None:
            raise ValueError("Illegal group reference")
        place = match.end()
        escaped, name, digits, plain = match.groups()
        if digits is None:
            parts.append(pattern.groupindex[name] if name else escaped or plain)
            continue
        size = next((size for size in range(len(digits), 1, -1) if int(digits[:size]) <= pattern.groups), 1)
        if int(digits[:size]) > pattern.groups:
            raise IndexError(f"No group {digits[:size]}")
        parts.append(int(digits[:size]))
        place -= len(digits) - size
    return parts


def distinguished_name(subject: Iterable[Iterable[tuple[str, str]]]) -> str:
    """Return a certificate's name, given in the form of Python's ssl, in the format of Java's `X500Principal`."""
    parts = [list(each) for each in subject]
    return ",".join("+".join(_attribute(*pair) for pair in pairs) for pairs in reversed(parts))


def _attribute(name: str, value: str) -> str:
    if name == _EMAIL:  # RFC 2253 has no name for it
        encoded = value.encode()
        return f"{_EMAIL_OID}=#{bytes([_IA5_STRING, len(encoded)]).hex()}{encoded.hex()}"
    escaped = _SPECIAL.sub(r"\\\1", value)
    if escaped.startswith(("#", " ")):
        escaped = f"\\{escaped}"
    if escaped.endswith(" ") and len(value) > 1:
        escaped = f"{escaped[:-1]}\\ "
    return f"{_SHORT_NAMES.get(name, name)}={escaped}"
