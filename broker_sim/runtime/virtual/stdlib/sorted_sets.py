"""Sets with a sorted order, for library modules that iterate sets of strings.

Hashes of strings differ between processes, and between 32-bit and 64-bit Python, and so would the requests that a
library sends in the order of a set.
"""

from __future__ import annotations

import builtins
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

_OPERATIONS = (
    "__and__", "__or__", "__rand__", "__ror__", "__rsub__", "__rxor__", "__sub__", "__xor__",
    "copy", "difference", "intersection", "symmetric_difference", "union",
)  # fmt: skip


class _LikeItsBase(type):
    """Counts plain sets as instances too: a library checks callers' values with `isinstance`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__bases__[0])


def _sorted_iterator(self: Any) -> Iterator[Any]:
    """Iterate from the least member to the greatest; members without an order keep that of their hashes."""
    base: Any = type(self).__bases__[0]
    if len(self) > 1:
        try:
            return iter(sorted(base.__iter__(self)))
        except TypeError:
            pass
    iterator: Iterator[Any] = base.__iter__(self)
    return iterator


def _of_same_kind(method: Callable[..., Any], make: Callable[[Any], Any]) -> Callable[..., Any]:
    @wraps(method)
    def operation(*args: Any) -> Any:
        result = method(*args)
        return result if result is NotImplemented else make(result)

    return operation


def _text(self: Any) -> str:
    """Return a plain set's text with sorted members: libraries log their sets."""
    base: type[Any] = type(self).__bases__[0]
    if not self:
        return f"{base.__name__}()"
    members = "{" + ", ".join(map(repr, self)) + "}"
    return members if base is builtins.set else f"{base.__name__}({members})"


def _reduce(self: Any) -> tuple[Any, ...]:
    """Make pickle and copy use a plain set: these classes have no name in their module."""
    return type(self).__bases__[0], ([*self],)


def _sorted_kind(base: type[Any]) -> type[Any]:
    members: dict[str, Any] = {"__slots__": (), "__iter__": _sorted_iterator, "__reduce__": _reduce, "__repr__": _text}
    kind = _LikeItsBase(base.__name__, (base,), members)
    for name in _OPERATIONS:
        setattr(kind, name, _of_same_kind(getattr(base, name), kind))
    return kind


sorted_set = _sorted_kind(builtins.set)
sorted_frozenset = _sorted_kind(builtins.frozenset)


def _pop_least(self: Any) -> Any:
    least = next(iter(self), None)
    if not self:
        raise KeyError("pop from an empty set")
    self.remove(least)
    return least


sorted_set.pop = _pop_least


def sort_sets_of(module: ModuleType) -> None:
    """Make `set()` and `frozenset()` create sorted sets in that module from now on."""
    vars(module).setdefault("set", sorted_set)
    vars(module).setdefault("frozenset", sorted_frozenset)
