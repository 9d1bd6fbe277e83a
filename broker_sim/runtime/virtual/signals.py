"""Signal handlers on a virtual loop, for programs that send signals to themselves."""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Signals:
    """The signal handlers of one loop; removing one restores the previous handler."""

    def __init__(self, loop: asyncio.BaseEventLoop) -> None:
        self._loop = loop
        self._before: dict[int, Any] = {}

    def add(self, number: int, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        """Call the callback on the loop for each signal of that number. Raises asyncio's errors."""
        if asyncio.iscoroutine(callback) or inspect.iscoroutinefunction(callback):
            raise TypeError("coroutines cannot be used with add_signal_handler()")
        _check(number)
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("signals can be handled in the main thread only")

        def handle(*_: object) -> None:
            self._loop.call_soon(callback, *args)

        before = signal.signal(number, handle)
        self._before.setdefault(number, before)

    def remove(self, number: int) -> bool:
        """Remove a handler; return whether there was one."""
        _check(number)
        if number not in self._before:
            return False
        signal.signal(number, self._before.pop(number))
        return True

    def remove_all(self) -> None:
        """Remove all handlers because the loop is being closed."""
        for number in list(self._before):
            self.remove(number)


def _check(number: object) -> None:
    if not isinstance(number, int):
        raise TypeError(f"sig must be an int, not {number!r}")
    if number not in signal.valid_signals():
        raise ValueError(f"invalid signal number {number}")
