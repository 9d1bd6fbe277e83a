"""Handles of a virtual loop: asyncio's, made faster, as every callback needs one.

What asyncio's own constructors do beyond that is for debug mode, in which these call them.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from broker_sim.runtime.virtual.process_loop import ProcessLoop

__all__ = ["VirtualHandle", "VirtualTimerHandle"]


class VirtualHandle(asyncio.Handle):
    """A callback that is ready."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: ProcessLoop,
        context: Context | None,
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
