"""Words for reports: what a callback is, and where tasks wait."""

from __future__ import annotations

import asyncio
from pathlib import PurePath
from typing import Any

__all__ = ["describe_waiting", "label"]

SHOWN_TASKS = 50
SHOWN_AWAITS = 6


def label(handle: Any) -> str:
    """Name a handle's callback without any address in it: a task by its name, else a function."""
    callback = handle._callback
    while (inner := getattr(callback, "func", None)) is not None:
        callback = inner
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return owner.get_name()
    return getattr(callback, "__qualname__", None) or type(callback).__name__


def describe_waiting(loop: asyncio.AbstractEventLoop) -> str:
    """Return one line for each task of the loop that is not done: its name, and what it awaits."""
    tasks = sorted(asyncio.all_tasks(loop), key=hash)
    lines = [f"  {task.get_name()} waits at {_describe_awaits(task)}" for task in tasks]
    if len(lines) > SHOWN_TASKS:
        lines[SHOWN_TASKS:] = [f"  and {len(lines) - SHOWN_TASKS} more"]
    return "\n".join(lines) or "  no task is left"


def _describe_awaits(task: asyncio.Task[Any]) -> str:
    """Return the places in the task's coroutines, outermost first."""
    places: list[str] = []
    awaited: Any = task.get_coro()
    while awaited is not None and len(places) < SHOWN_AWAITS:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            file = PurePath(frame.f_code.co_filename).name
            places.append(f"{file}:{frame.f_lineno} ({frame.f_code.co_name})")
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return " > ".join(places) or "its start"
