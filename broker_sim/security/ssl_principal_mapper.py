"""The principal of a client's certificate, by `ssl.principal.mapping.rules`.

Mirrors `SslPrincipalMapper`. A rule is `DEFAULT`, for the whole distinguished name, or
`RULE:PATTERN/REPLACEMENT/` with L or U behind it for lower or upper case; the first that matches counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*(?:{_RULE})\s*(?:,\s*|$)")
_REFERENCE: Final = re.compile(r"(\\.)|\$(\d)(\d*)|(.)", re.DOTALL)
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
        """Return the name of the principal; None when no rule matches."""
        for rule in self._rules:
            if rule.pattern is None:
                return distinguished
            if match := rule.pattern.fullmatch(distinguished):
                name = _replaced(match, rule.replacement)
                return {"L": name.lower(), "U": name.upper()}.get(rule.case, name)
        return None


def _parse(rules: str) -> Iterable[_Rule]:
    for match in _SPLITTER.finditer(rules):
        default, pattern, replacement, case, other = match.groups()
        if default:
            yield _Rule(None)
        elif pattern is not None:
            try:
                yield _Rule(re.compile(pattern), replacement, case)
            except re.error as error:
                raise ConfigError(
                    f"Invalid rule: {match[0].strip()}: {error}, in ssl.principal.mapping.rules"
                ) from None
        elif other:
            raise ConfigError(f"Invalid rule: `{other}`, in ssl.principal.mapping.rules")


def _replaced(match: re.Match[str], replacement: str) -> str:
    """Return the replacement with `$1` and so on filled in; a number without a group stays as it is."""

    def part(reference: re.Match[str]) -> str:
        escaped, first, more, plain = reference.groups()
        if escaped is not None:
            return escaped[1:]
        if plain is not None:
            return plain
        count = len(match.groups())
        for length in range(len(more), -1, -1):
            number = int(first + more[:length])
            if number <= count:
                return (match[number] or "") + more[length:]
        return f"${first}{more}"

    return _REFERENCE.sub(part, replacement)


def distinguished_name(subject: Iterable[Iterable[tuple[str, str]]]) -> str:
    """Return the name of a certificate, given as Python's ssl does, as Java's `X500Principal` writes it."""
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
