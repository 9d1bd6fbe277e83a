"""Futures and tasks whose hashes are numbers, so that sets of them have the same order in each run.

The hash of other objects is their address. aiokafka iterates sets of futures and tasks in its
fetcher and its sender, and so does everybody who uses `asyncio.wait`.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.virtual.network import NetworkLoop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Iterator
    from contextvars import Context

_EAGER: object = getattr(asyncio, "eager_task_factory", ...)
"""asyncio's factory of eager tasks, from Python 3.12 on; its tasks get numbers too."""


class NumberedFuture(asyncio.Future[Any]):
    """A future with a number, given when the number is first asked for."""

    __slots__ = ("_number",)
    _number: int

    def __hash__(self) -> int:
        try:
            return self._number
        except AttributeError:
            number: int = self.get_loop().next_number()  # type: ignore[attr-defined]
            self._number = number
            return number


class NumberedTask(asyncio.Task[Any]):
    """The same for tasks."""

    __slots__ = ("_number",)
    _number: int

    def __hash__(self) -> int:
        try:
            return self._number
        except AttributeError:
            number: int = self.get_loop().next_number()  # type: ignore[attr-defined]
            self._number = number
            return number


class OrderedWeakSet:
    """As much of a weak set as a loop needs for its asynchronous generators, in order of adding.

    With a `WeakSet` the order in which `shutdown_asyncgens` closes them would follow addresses.
    """

    def __init__(self) -> None:
        self._members: dict[int, weakref.ref[AsyncGenerator[Any, Any]]] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[AsyncGenerator[Any, Any]]:
        for reference in list(self._members.values()):
            member = reference()
            if member is not None:
                yield member

    def add(self, member: AsyncGenerator[Any, Any]) -> None:
        """Add a member; it leaves by itself when nobody else refers to it."""
        key = id(member)
        self._members[key] = weakref.ref(member, lambda _: self._members.pop(key, None))

    def discard(self, member: AsyncGenerator[Any, Any]) -> None:
        """Remove the member if it is there."""
        self._members.pop(id(member), None)

    def clear(self) -> None:
        """Remove all."""
        self._members.clear()


class NumberingLoop(NetworkLoop):
    """The part of a virtual loop that makes futures and tasks."""

    _closed: bool
    _task_factory: object | None

    def __init__(self) -> None:
        super().__init__()
        self._numbers = 0
        self._task_numbers = 0

    def next_number(self) -> int:
        """Return 1, 2, 3, ...: hashes for objects whose address would differ between runs."""
        self._numbers += 1
        return self._numbers

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future whose hash is the same in each run."""
        return NumberedFuture(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None, **options: Any
    ) -> asyncio.Task[Any]:
        """Return a task whose hash and name are the same in each run."""
        if self._closed:
            raise RuntimeError("Event loop is closed")
        if name is None:
            self._task_numbers += 1
            name = f"{getattr(coro, '__qualname__', 'task')}-{self._task_numbers}"
        if self._task_factory is _EAGER:
            options["eager_start"] = True
        elif self._task_factory is not None:
            return super().create_task(coro, name=name, context=context, **options)
        return NumberedTask(coro, loop=self, name=name, context=context, **options)
