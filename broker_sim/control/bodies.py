"""JSON bodies of requests, read field by field; errors are one line that names the field."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from broker_sim.errors import did_you_mean
from broker_sim.runtime.arguments import HIDDEN, SECRET_ARGUMENTS, can_be_sent

if TYPE_CHECKING:
    from collections.abc import Mapping

Value = TypeVar("Value", bool, int, float, str)

_KINDS: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str, "str | bytes": str}
"""Types of JSON values by annotation."""
CHECKED_BY_VERBS: Final = ("Mapping[str, str | bytes | None]", "Iterable[Mapping[")
"""Prefixes of the annotations of parameters that verbs check themselves: headers and records."""
_MAX_DIGITS: Final = 20
"""Maximum length of a 64-bit number with its sign."""


class BadRequestError(ValueError):
    """The request is invalid; the text says what is expected."""


def parse_body(content: bytes) -> Body:
    """Return the body's fields; an empty body has none. Raises BadRequestError."""
    try:
        fields = json.loads(content or b"{}", parse_int=_int, parse_float=_float, parse_constant=_refuse_number)
    except RecursionError as error:
        raise BadRequestError("the body is nested too deeply") from error
    except ValueError as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise BadRequestError("the body must be a JSON object")
    if not can_be_sent(json.dumps(fields, ensure_ascii=False)):
        raise BadRequestError("a text in the body is not valid Unicode: it contains a lone surrogate")
    return Body(fields)


def parse_number(name: str, text: str) -> int:
    """Return the number of a broker, a partition or a fault from a path. Raises BadRequestError."""
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise BadRequestError(f"{name} must be a number, not {text!r}")
    return int(text)


def _int(text: str) -> int:
    if len(text) > _MAX_DIGITS or not -(1 << 63) <= int(text) < 1 << 63:
        _refuse_number(text)
    return int(text)


def _float(text: str) -> float:
    if not math.isfinite(float(text)):
        _refuse_number(text)
    return float(text)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"numbers have at most 64 bits, unlike {text[:_MAX_DIGITS]}")


def _are_numbers(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int for item in value)


class Body:
    """A JSON object whose fields are taken one by one."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self._fields = dict(fields)
        self._known: list[str] = []

    def take(self, name: str, kind: type[Value], default: Value | None = None) -> Value:
        """Return a field of that type, or the default. Raises BadRequestError if it is missing without a default."""
        value = self.take_optional(name, kind)
        if value is None:
            value = default
        if value is None:
            raise BadRequestError(f"{name!r} is missing: {kind.__name__} expected")
        return value

    def take_optional(self, name: str, kind: type[Value]) -> Value | None:
        """Return a field of that type, or None if it is null or absent."""
        self._known.append(name)
        value = self._fields.pop(name, None)
        # bool is an int in Python, but not in JSON; each int there is a float too.
        kinds = (int, float) if kind is float else kind
        if value is None or (isinstance(value, kinds) and (kind is bool) is isinstance(value, bool)):
            return value
        shown_value = HIDDEN if name in SECRET_ARGUMENTS else json.dumps(value)
        raise BadRequestError(f"{name!r} must be {kind.__name__}, not {shown_value}")

    def take_parameter(self, name: str, annotation: str, *, required: bool) -> object:
        """Return a field for a parameter with that annotation; None if it is absent and optional.

        A required parameter that may be None must be present, as null.
        """
        kind = _KINDS.get(annotation.removesuffix(" | None"))
        if kind is not None:
            may_be_null = annotation.endswith(" | None") and name in self._fields
            take = self.take if required and not may_be_null else self.take_optional
            return take(name, kind)
        if annotation.startswith(CHECKED_BY_VERBS):
            return self.take_any(name)
        if annotation.startswith("Mapping[str, "):
            return self.take_configs(name)
        if annotation.startswith("Mapping[int, list[int]]"):
            return self.take_assignments(name)
        raise TypeError(f"parameter {name!r} has no JSON form: {annotation}")

    def take_any(self, name: str) -> object:
        """Return a field of any type, None if it is absent."""
        self._known.append(name)
        return self._fields.pop(name, None)

    def take_assignments(self, name: str) -> dict[int, list[int]]:
        """Return a field that maps numbers, which are texts in JSON, to lists of numbers."""
        self._known.append(name)
        value = self._fields.pop(name, None) or {}
        if not isinstance(value, dict) or not all(map(_are_numbers, value.values())):
            raise BadRequestError(f"{name!r} must map partitions to lists of brokers, not {json.dumps(value)}")
        return {parse_number("a partition", key): items for key, items in value.items()}

    def take_configs(self, name: str) -> dict[str, str | int | float | bool]:
        """Return a field that maps texts to texts, numbers and booleans; empty if absent."""
        self._known.append(name)
        value = self._fields.pop(name, None) or {}
        kinds = (str, int, float, bool)
        if not isinstance(value, dict) or not all(isinstance(v, kinds) for v in value.values()):
            raise BadRequestError(f"{name!r} must map texts to texts, numbers or booleans, not {json.dumps(value)}")
        return value

    def end(self) -> None:
        """Raise BadRequestError if a field was not taken: no parameter has that name."""
        if self._fields:
            unknown = ", ".join(f"{name}{did_you_mean(name, self._known)}" for name in sorted(self._fields))
            names = ", ".join(self._known) or "none"
            raise BadRequestError(f"unknown fields: {unknown}; the verb has: {names}")
