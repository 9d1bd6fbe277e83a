"""What is done to a cluster for the time of a `with` block; Kafka has no counterpart."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Scope(Generic[T]):
    """Does something when a block is entered and undoes it at its end, also after an error.

    For `with` and `async with`; `leave_at_once` is for `with` where what `leave` returns would have
    to be awaited.
    """

    def __init__(
        self, enter: Callable[[], T], leave: Callable[[T], object], leave_at_once: Callable[[T], object] | None = None
    ) -> None:
        self._enter = enter
        self._leave = leave
        self._leave_at_once = leave_at_once or leave
        self._made: list[T] = []

    def __enter__(self) -> T:
        self._made.append(self._enter())
        return self._made[-1]

    def __exit__(self, *_: object) -> None:
        self._leave_at_once(self._made.pop())

    async def __aenter__(self) -> T:
        self._made.append(self._enter())
        return self._made[-1]

    async def __aexit__(self, *_: object) -> None:
        left: Any = self._leave(self._made.pop())
        if inspect.isawaitable(left):
            await left
