"""Handles of a virtual loop: asyncio's, made faster, as every callback needs one.

What asyncio's own constructors do beyond that is for debug mode, in which these call them.
"""

from __future__ import annotations

import asyncio
from asyncio import format_helpers
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from broker_sim.runtime.virtual.process_loop import ProcessLoop


class VirtualHandle(asyncio.Handle):
    """A callback that is ready."""

    __slots__ = ()

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], loop: ProcessLoop, context: Context | None
    ) -> None:
        if loop.is_debugged:
            super().__init__(callback, args, loop, context)
            return
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class VirtualTimerHandle(asyncio.TimerHandle):
    """A callback that is due at a time."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: ProcessLoop,
        context: Context | None,
    ) -> None:
        if loop.is_debugged:
            super().__init__(when, callback, args, loop, context)
            return
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = False

    def cancel(self) -> None:
        """Do not run the callback."""
        if self._cancelled:
            return
        loop: ProcessLoop = self._loop
        if loop.is_debugged:
            super().cancel()
            return
        loop._timer_handle_cancelled(self)  # type: ignore[attr-defined]
        self._cancelled = True
        self._callback = self._args = None  # type: ignore[assignment]


def failure_of(handle: asyncio.Handle, error: BaseException) -> dict[str, Any]:
    """Return what an exception handler is told of a callback that has failed, in asyncio's words."""
    what = format_helpers._format_callback_source(handle._callback, handle._args)  # type: ignore[attr-defined]
    return {"message": f"Exception in callback {what}", "exception": error, "handle": handle}
