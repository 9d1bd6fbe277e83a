"""Refuses unknown arguments of public classes with one line that names those that there are.

Some arguments are secrets, by their names: they are in no trace and in no error.
"""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

P = ParamSpec("P")
HIDDEN: Final = "<hidden>"
SECRET_ARGUMENTS: Final = frozenset({"password"})


def can_be_sent(text: str) -> bool:
    """Whether a text can be encoded: no half of a surrogate pair is in it.

    Python reads a command line or a variable that is not UTF-8 as such halves, and JSON may have them. Kept in the
    metadata, one of them would break every answer that tells it.
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
            raise ValueError(f"{text!r} is not Unicode: it has half of a surrogate pair")


def names_checked(init: Callable[Concatenate[Any, P], None]) -> Callable[Concatenate[Any, P], None]:
    """Let an `__init__` raise TypeError for an unknown argument, with the names of all arguments."""
    known = [name for name in inspect.signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(self: Any, *args: P.args, **kwargs: P.kwargs) -> None:
        for name in kwargs:
            if name not in known:
                raise TypeError(f"there is no argument {name!r}; there are {', '.join(known)}")
        init(self, *args, **kwargs)

    return cast("Callable[Concatenate[Any, P], None]", checked)


def told_arguments(
    method: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[object, ...]:
    """Return the arguments of a call of the method, without `self`, with secrets hidden."""
    if SECRET_ARGUMENTS.isdisjoint(method.__annotations__):
        return (*args, *kwargs.values())
    names = list(inspect.signature(method).parameters)[1:]
    given = [*zip(names, args, strict=False), *kwargs.items()]
    return tuple(HIDDEN if name in SECRET_ARGUMENTS else value for name, value in given)
