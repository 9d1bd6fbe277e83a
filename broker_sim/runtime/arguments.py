"""Checks of the arguments of public classes and verbs: names, texts and durations.

Arguments with certain names are secrets: they appear in no trace and no error.
"""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, cast

from broker_sim.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

P = ParamSpec("P")
HIDDEN: Final = "<hidden>"
SECRET_ARGUMENTS: Final = frozenset({"password"})
LONGEST_MS: Final = 2**31 - 1
"""Maximum duration of an argument: 25 days. The throttle time field of responses has no room for more."""


def can_be_sent(text: str) -> bool:
    """Whether a text can be encoded as UTF-8: it has no lone surrogate.

    Python turns a command line or variable that is not UTF-8 into lone surrogates, and JSON may contain them. Stored
    in the metadata, one of them would break every response with that text.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_can_be_sent(*texts: str | None) -> None:
    """Raise ValueError for a text that cannot be encoded."""
    for text in texts:
        if text is not None and not can_be_sent(text):
            raise ValueError(f"{text!r} is not valid Unicode: it has a lone surrogate")


def names_checked(init: Callable[Concatenate[Any, P], None]) -> Callable[Concatenate[Any, P], None]:
    """Make an `__init__` raise TypeError for an unknown argument, with a list of the allowed ones."""
    names = [name for name in inspect.signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(self: Any, *args: P.args, **kwargs: P.kwargs) -> None:
        for name in kwargs:
            if name not in names:
                raise TypeError(f"unknown argument {name!r}{did_you_mean(name, names)}; allowed: {', '.join(names)}")
        init(self, *args, **kwargs)

    return cast("Callable[Concatenate[Any, P], None]", checked)


def traced_arguments(
    method: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[object, ...]:
    """Return the arguments of a call for a trace: without `self`, and with secrets hidden."""
    if SECRET_ARGUMENTS.isdisjoint(method.__annotations__):
        return (*args, *kwargs.values())
    names = list(inspect.signature(method).parameters)[1:]
    arguments = [*zip(names, args, strict=False), *kwargs.items()]
    return tuple(HIDDEN if name in SECRET_ARGUMENTS else value for name, value in arguments)


def checked_ms(name: str, value: int) -> int:
    """Return a duration in ms. Raises ValueError if it is negative or more than 25 days."""
    _check(name, value, LONGEST_MS)
    return value


def checked_s(name: str, value: float) -> float:
    """Return a duration in seconds. Raises ValueError as `checked_ms` does."""
    _check(name, value, LONGEST_MS / 1_000)
    return value


def _check(name: str, value: float, longest: float) -> None:
    if value < 0:
        raise ValueError(f"{name} must be at least 0, not {value}")
    if not value <= longest:  # NaN is not
        raise ValueError(f"{name} must be at most {longest}, not {value}")
