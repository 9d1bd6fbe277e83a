"""JAAS lines: a login module and its options, in one configuration; mirrors `JaasConfig` and `JaasContext`.

Such a line is `org.apache.kafka.common.security.plain.PlainLoginModule required user_NAME="PASSWORD";`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONTROL_FLAGS: Final = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
_TOKEN: Final = re.compile(
    r"""(?:\s|//[^\n]*|/\*.*?\*/)*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([\w.$-]+)|([=;])|(\Z)|(.))""", re.DOTALL
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}
_END: Final = ""


class LoginModule(NamedTuple):
    """A class and its options, which are secrets."""

    name: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {len(self.options)} options)"


class _Word(NamedTuple):
    text: str
    is_word: bool
    """Whether the token is a word or quoted text; otherwise it is `=`, `;` or the end."""


def parse_jaas(text: str) -> LoginModule:
    """Return the only login module of the text. Raises ConfigError; the message never contains an option's value."""
    words = [_unquoted(match) for match in _TOKEN.finditer(text)]
    words += [_Word(_END, is_word=False)] * 2
    modules = []
    position = 0
    while words[position].text != _END or words[position].is_word:
        module, position = _parse_module(words, position)
        modules.append(module)
    if not modules:
        raise ConfigError("Login module not specified in JAAS config")
    if len(modules) > 1:
        raise ConfigError(f"JAAS config property contains {len(modules)} login modules, should be 1 module")
    return modules[0]


def _unquoted(match: re.Match[str]) -> _Word:
    double, single, word, sign, end, other = match.groups()
    quoted = double if double is not None else single
    if quoted is not None:
        return _Word(_ESCAPE.sub(_unescaped, quoted), is_word=True)
    if word is not None:
        return _Word(word, is_word=True)
    return _Word(_END if end is not None else sign or other, is_word=False)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code.isdigit() and int(code[0]) < 8 else _CONTROLS.get(code, code)


def _parse_module(words: list[_Word], position: int) -> tuple[LoginModule, int]:
    name, flag = words[position], words[position + 1] if position + 1 < len(words) else None
    if flag is None or not flag.is_word:
        raise ConfigError("Login module control flag not specified in JAAS config")
    if flag.text.upper() not in _CONTROL_FLAGS:
        raise ConfigError(f"Invalid login module control flag '{flag.text}' in JAAS config")
    options = {}
    position += 2
    while words[position].is_word:
        key, equals, value = words[position], *words[position + 1 : position + 3]
        if equals.text != "=" or not value.is_word:
            raise ConfigError(f"Value not specified for key '{key.text}' in JAAS config")
        options[key.text] = value.text
        position += 3
    if words[position].text != ";":
        raise ConfigError("JAAS config entry not terminated by semi-colon")
    return LoginModule(name.text, options), position + 1
