"""Refuses unknown arguments of public classes with one line that names those that there are."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, cast

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["names_checked"]

P = ParamSpec("P")


def names_checked(
    init: Callable[Concatenate[Any, P], None],
) -> Callable[Concatenate[Any, P], None]:
    """Let an `__init__` raise TypeError for an unknown argument, with the names of all arguments."""
    known = [name for name in inspect.signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(self: Any, *args: P.args, **kwargs: P.kwargs) -> None:
        for name in kwargs:
            if name not in known:
                raise TypeError(f"there is no argument {name!r}; there are {', '.join(known)}")
        init(self, *args, **kwargs)

    return cast("Callable[Concatenate[Any, P], None]", checked)
