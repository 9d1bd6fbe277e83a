"""Futures and tasks with numbers as hashes, so that sets of them have the same order in each run.

By default an object's hash is its address. aiokafka iterates sets of futures and tasks in its fetcher and
its sender, and so does every user of `asyncio.wait`.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator


def _numbered_hash(self: Any) -> int:
    try:
        number: int = self._number
    except AttributeError:
        number = self._number = self.get_loop().core.next_number()
    return number


class NumberedFuture(asyncio.Future[Any]):
    """A future whose hash is a number, assigned at first use."""

    __slots__ = ("_number",)
    __hash__ = _numbered_hash


class NumberedTask(asyncio.Task[Any]):
    """A task whose hash is a number, assigned at first use."""

    __slots__ = ("_number",)
    __hash__ = _numbered_hash


class OrderedWeakSet:
    """A weak set in insertion order, with the methods that a loop needs for its asynchronous generators.

    With a `WeakSet`, `shutdown_asyncgens` would close them in the order of their addresses.
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
        """Add a member; it disappears once nothing else refers to it."""
        key = id(member)
        self._members[key] = weakref.ref(member, lambda _: self._members.pop(key, None))

    def discard(self, member: AsyncGenerator[Any, Any]) -> None:
        """Remove the member if present."""
        self._members.pop(id(member), None)

    def clear(self) -> None:
        """Remove all."""
        self._members.clear()
