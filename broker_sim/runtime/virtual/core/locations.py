"""Texts for reports: where the program is, what a callback is, where tasks wait, and which of them spin."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from functools import cache
from pathlib import Path, PurePath
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import Counter
    from types import CodeType, FrameType

_STANDARD_LIBRARY = Path(os.__file__).parent
_SITES = {"site-packages", "dist-packages"}
_CLIENTS = ("aiokafka", "kafka")
"""Packages that always count as libraries: an editable install or a vendored copy looks like a program."""
_OWN = Path(__file__).parents[3]
"""The folder of this package."""
NAMED_BY_PROCESS = "Task-"
"""Prefix of asyncio's own task names: their numbers count over all runs in the OS process."""
SHOWN_TASKS = 50
SHOWN_AWAITS = 6
SHOWN_SPINNERS = 3
STEPS_OF_GENERATORS = {"async_generator_asend", "async_generator_athrow"}
"""Types of the awaitables of a running asynchronous generator, such as a fixture's or a context manager's."""


@cache
def is_of_a_library(file: str) -> bool:
    """Whether a file belongs to Python or to an installed, zipped or vendored library.

    A. Python's own modules, in a zip too.
    B. Packages of an environment.
    C. Packages of a zip or a wheel on the path.
    D. Packages beside their metadata, as `pip install --target` and an unpacked wheel leave them.
    E. Kafka clients in any other folder.
    """
    path = Path(file)
    if path.is_relative_to(_STANDARD_LIBRARY) or not _SITES.isdisjoint(path.parts):
        return True
    if not path.exists():
        return any(parent.is_file() for parent in path.parents)
    return _is_of_a_client(path) or any(_has_metadata(folder) for folder in _import_folders() & {*path.parents})


def _is_of_a_client(path: Path) -> bool:
    packages = (sys.modules.get(name) for name in _CLIENTS)
    return any(path.is_relative_to(folder) for package in packages for folder in getattr(package, "__path__", ()))


def _import_folders() -> set[Path]:
    return {Path(entry or ".").absolute() for entry in sys.path}


@cache
def _has_metadata(folder: Path) -> bool:
    return any(folder.glob("*.dist-info"))


@cache
def is_ours(file: str) -> bool:
    """Whether a file belongs to this package, or is a name such as `<string>`."""
    return file.startswith("<") or Path(file).is_relative_to(_OWN)


def program_location(frame: FrameType | None = None) -> str:
    """Return the innermost line of the program in this thread's stack, or in the stack of `frame`.

    Without any line of the program, it is the innermost line of a library.
    """
    frame = frame or sys._getframe(1)
    library: FrameType | None = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_ours(file):
            if not is_of_a_library(file):
                return _text(frame)
            library = library or frame
        elif library is not None:
            break  # the loop: the frames below it belong to its caller
        frame = frame.f_back
    return "?" if library is None else _text(library)


def _text(frame: FrameType) -> str:
    code = frame.f_code
    return f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}'


def label(handle: Any) -> str:
    """Name a handle's callback without any address: a task by its name, else a function."""
    return _name(spinner_of(handle))


def spinner_of(handle: Any) -> Any:
    """Return the task of a handle's callback, else its function, else its type."""
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
    """Return one line for each of those that ran most often: the count, and where it is."""
    return "\n".join(
        f"  {times} times {_name(spinner)} {_describe_location(spinner)}"
        for spinner, times in ran.most_common(SHOWN_SPINNERS)
    )


def _describe_location(spinner: Any) -> str:
    if isinstance(spinner, asyncio.Task):
        return "which has ended" if spinner.done() else f"at {_describe_awaits(spinner)}"
    code = getattr(spinner, "__code__", None)
    return "" if code is None else f"at {_location(code, code.co_firstlineno)}"


def describe_waiting(loop: asyncio.AbstractEventLoop) -> str:
    """Return one line for each task of the loop that is not done: its name, and what it awaits."""
    tasks = sorted(asyncio.all_tasks(loop), key=hash)
    lines = [f"  {_name(task)} waits at {_describe_awaits(task)}" for task in tasks]
    if len(lines) > SHOWN_TASKS:
        lines[SHOWN_TASKS:] = [f"  and {len(lines) - SHOWN_TASKS} more"]
    return "\n".join(lines) or "  no task is left"


def _describe_awaits(task: asyncio.Task[Any]) -> str:
    """Return the lines where the task's coroutines wait, outermost first; a long chain is cut in the middle."""
    lines: list[str] = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = _first_of(awaited, "cr_frame", "gi_frame", "ag_frame")
        if frame is not None:
            lines.append(_location(frame.f_code, frame.f_lineno))
        if type(awaited).__name__ in STEPS_OF_GENERATORS:
            generators = gc.get_referents(awaited)
            awaited = next((each for each in generators if isinstance(each, AsyncGeneratorType)), None)
        else:
            awaited = _first_of(awaited, "cr_await", "gi_yieldfrom", "ag_await")
    if len(lines) > SHOWN_AWAITS:
        half = SHOWN_AWAITS // 2
        lines[half:-half] = ["..."]
    return " > ".join(lines) or "its start"


def _first_of(awaited: Any, *names: str) -> Any:
    return next((value for name in names if (value := getattr(awaited, name, None)) is not None), None)


def _location(code: CodeType, line: int) -> str:
    return f"{PurePath(code.co_filename).name}:{line} ({code.co_name})"
