"""Sets up what `run_forever` does, for callbacks that are run from outside the loop."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from asyncio.events import _get_running_loop, _set_running_loop
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def _swap_current_task(
    loop: asyncio.AbstractEventLoop | None, task: asyncio.Task[Any] | None
) -> asyncio.Task[Any] | None:
    """Set the current task of the running loop; return the one before.

    From Python 3.14 on a thread has one current task over all of its loops, and no other task may run in it.
    """
    if sys.version_info >= (3, 14) and loop is not None:
        before: asyncio.Task[Any] | None = vars(asyncio.tasks)["_swap_current_task"](loop, task)
        return before
    return None


@contextmanager
def outside_of(outer: asyncio.AbstractEventLoop | None) -> Iterator[None]:
    """Let another loop run inside the block while the loop `outer` of this thread waits.

    asyncio refuses that, because the outer loop is blocked meanwhile. A run in virtual time takes no longer than any
    other call.
    """
    if outer is None:
        yield
        return
    task = _swap_current_task(outer, None)
    _set_running_loop(None)
    try:
        yield
    finally:
        _set_running_loop(outer)
        _swap_current_task(outer, task)


class RunningLoop:
    """A context in which `loop` is this thread's running loop, and no garbage is collected.

    Another loop may be running outside: a test in real time may step a virtual loop.
    """

    __slots__ = ("_collects", "_hooks", "_loop", "_outer", "_outer_task", "_own_hooks")

    def __init__(self, loop: asyncio.BaseEventLoop) -> None:
        self._loop = loop
        self._own_hooks: tuple[Any, Any] = (
            loop._asyncgen_firstiter_hook,  # type: ignore[attr-defined]
            loop._asyncgen_finalizer_hook,  # type: ignore[attr-defined]
        )
        self._outer: asyncio.AbstractEventLoop | None = None
        self._outer_task: asyncio.Task[Any] | None = None
        self._collects = False
        self._hooks: Any = None

    def __enter__(self) -> None:
        loop = self._loop
        if loop.is_running():
            raise RuntimeError("the virtual loop is running: do not step it from its own callbacks")
        self._outer = _get_running_loop()
        self._outer_task = _swap_current_task(self._outer, None)
        self._collects = gc.isenabled()
        self._hooks = sys.get_asyncgen_hooks()
        gc.disable()
        loop._thread_id = threading.get_ident()  # type: ignore[attr-defined]
        sys.set_asyncgen_hooks(*self._own_hooks)
        _set_running_loop(loop)

    def __exit__(self, *_: object) -> None:
        _set_running_loop(self._outer)
        _swap_current_task(self._outer, self._outer_task)
        self._outer_task = None
        sys.set_asyncgen_hooks(*self._hooks)
        self._loop._thread_id = None  # type: ignore[attr-defined]
        if self._collects:
            gc.enable()
