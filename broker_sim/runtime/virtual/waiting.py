"""Words for reports: what a callback is, where tasks wait, and which of them spin."""

from __future__ import annotations

import asyncio
import gc
from pathlib import PurePath
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import Counter
    from types import CodeType

NAMED_BY_PROCESS = "Task-"
"""So the names of tasks begin that were not made by the loop: the process counts them, all runs together."""
SHOWN_TASKS = 50
SHOWN_AWAITS = 6
SHOWN_SPINNERS = 3
STEPS_OF_GENERATORS = {"async_generator_asend", "async_generator_athrow"}
"""What is awaited where an asynchronous generator runs on, as that of a fixture or of a context manager."""


def label(handle: Any) -> str:
    """Name a handle's callback without any address in it: a task by its name, else a function."""
    return _name(spinner_of(handle))


def spinner_of(handle: Any) -> Any:
    """Return what a handle's callback works for: a task, else a function, else a type."""
    callback = handle._callback
    while (inner := getattr(callback, "func", None)) is not None:
        callback = inner
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return owner
    callback = getattr(callback, "__func__", callback)
    return callback if hasattr(callback, "__qualname__") else type(callback)


def _name(spinner: Any) -> str:
    if not isinstance(spinner, asyncio.Task):
        name: str = spinner.__qualname__
        return name
    name = spinner.get_name()
    if name.startswith(NAMED_BY_PROCESS):
        name = getattr(spinner.get_coro(), "__qualname__", "task")
    return name


def describe_spinners(ran: Counter[Any]) -> str:
    """Return one line for each of those that ran most: how often, and the line where it is."""
    return "\n".join(
        f"  {times} times {_name(spinner)} {_describe_place(spinner)}"
        for spinner, times in ran.most_common(SHOWN_SPINNERS)
    )


def _describe_place(spinner: Any) -> str:
    if isinstance(spinner, asyncio.Task):
        return "which has ended" if spinner.done() else f"at {_describe_awaits(spinner)}"
    code = getattr(spinner, "__code__", None)
    return "" if code is None else f"at {_place(code, code.co_firstlineno)}"


def describe_waiting(loop: asyncio.AbstractEventLoop) -> str:
    """Return one line for each task of the loop that is not done: its name, and what it awaits."""
    tasks = sorted(asyncio.all_tasks(loop), key=hash)
    lines = [f"  {_name(task)} waits at {_describe_awaits(task)}" for task in tasks]
    if len(lines) > SHOWN_TASKS:
        lines[SHOWN_TASKS:] = [f"  and {len(lines) - SHOWN_TASKS} more"]
    return "\n".join(lines) or "  no task is left"


def _describe_awaits(task: asyncio.Task[Any]) -> str:
    """Return the places in the task's coroutines, outermost first; the middle of many is left out."""
    places: list[str] = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = _first_of(awaited, "cr_frame", "gi_frame", "ag_frame")
        if frame is not None:
            places.append(_place(frame.f_code, frame.f_lineno))
        if type(awaited).__name__ in STEPS_OF_GENERATORS:
            generators = gc.get_referents(awaited)
            awaited = next((each for each in generators if isinstance(each, AsyncGeneratorType)), None)
        else:
            awaited = _first_of(awaited, "cr_await", "gi_yieldfrom", "ag_await")
    if len(places) > SHOWN_AWAITS:
        half = SHOWN_AWAITS // 2
        places[half:-half] = ["..."]
    return " > ".join(places) or "its start"


def _first_of(awaited: Any, *names: str) -> Any:
    return next((found for name in names if (found := getattr(awaited, name, None)) is not None), None)


def _place(code: CodeType, line: int) -> str:
    return f"{PurePath(code.co_filename).name}:{line} ({code.co_name})"
