"""Cutting a sequence down to what a difference needs: delta debugging (ddmin) over its actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = ["shrink"]

T = TypeVar("T")


async def shrink(
    items: Sequence[T], fails: Callable[[Sequence[T]], Awaitable[bool]], tries: int = 200
) -> list[T]:
    """Return as few of the items, in their order, as still fail: none of them can be left out.

    `items` have to fail. At most `tries` candidates are tried; then the smallest found so far is
    returned.
    """
    left = list(items)
    pieces = 2
    while len(left) > 1:
        size = -(-len(left) // pieces)
        for start in range(0, len(left), size):
            if tries == 0:
                return left
            tries -= 1
            candidate = left[:start] + left[start + size :]
            if await fails(candidate):
                left = candidate
                pieces = max(pieces - 1, 2)
                break
        else:
            if size == 1:
                break
            pieces = min(pieces * 2, len(left))
    return left
