"""Which of the tasks that are ready runs first: in asyncio the oldest one, here any of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import Handle
    from collections import deque
    from collections.abc import Callable

__all__ = ["draw_next_task"]


def draw_next_task(ready: deque[Handle], random: Callable[[], float]) -> None:
    """If the next callback is a task's, let chance decide which of the tasks comes first."""
    if not _is_of_task(ready[0]):
        return
    for index in range(int(random() * len(ready)), len(ready)):
        if _is_of_task(ready[index]):
            ready[0], ready[index] = ready[index], ready[0]
            return


def _is_of_task(handle: Any) -> bool:
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)
